#include "drawing/canvas.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "drawing/font.h"

namespace run_model {
namespace {

constexpr int kLetterGap = 1;   // dots
constexpr int kLetterEdge = 2;  // dots around a text

int rounded(double value, int low, int high) {
  return static_cast<int>(
      std::lround(std::clamp(value, static_cast<double>(low), static_cast<double>(high))));
}

void put(std::uint8_t* pixel, Color color) {
  pixel[0] = color.red;
  pixel[1] = color.green;
  pixel[2] = color.blue;
}

// The part of the line from 0 to 1 that lies between two borders along one axis.
bool clip_axis(double from, double delta, double low, double high, double& begin, double& end) {
  if (delta == 0) return from >= low && from <= high;
  double a = (low - from) / delta, b = (high - from) / delta;
  if (a > b) std::swap(a, b);
  begin = std::max(begin, a);
  end = std::min(end, b);
  return begin <= end;
}

}  // namespace

Canvas::Canvas(Image& image)
    : image_(image),
      line_width_(std::max(1, std::min(image.width(), image.height()) / 200)),
      letter_dot_(std::max(1, std::min(image.width(), image.height()) / 320)) {}

int Canvas::text_height() const { return (kGlyphHeight + 2 * kLetterEdge) * letter_dot_; }

int Canvas::text_width(std::string_view text) const {
  const int letters = static_cast<int>(std::min<std::size_t>(text.size(), 10'000));
  return (letters * (kGlyphWidth + kLetterGap) - kLetterGap + 2 * kLetterEdge) * letter_dot_;
}

void Canvas::blend(int x, int y, Color color) {
  std::uint8_t* pixel = image_.row(y) + static_cast<std::ptrdiff_t>(x) * kImageChannels;
  pixel[0] = static_cast<std::uint8_t>((pixel[0] + color.red) / 2);
  pixel[1] = static_cast<std::uint8_t>((pixel[1] + color.green) / 2);
  pixel[2] = static_cast<std::uint8_t>((pixel[2] + color.blue) / 2);
}

void Canvas::fill(double left, double top, double right, double bottom, Color color) {
  const int x0 = rounded(left, 0, image_.width()), x1 = rounded(right, 0, image_.width());
  const int y0 = rounded(top, 0, image_.height()), y1 = rounded(bottom, 0, image_.height());
  for (int y = y0; y < y1; ++y) {
    std::uint8_t* pixel = image_.row(y) + static_cast<std::ptrdiff_t>(x0) * kImageChannels;
    for (int x = x0; x < x1; ++x, pixel += kImageChannels) put(pixel, color);
  }
}

void Canvas::frame(double left, double top, double right, double bottom, Color color) {
  const double half = line_width_ / 2.0;
  fill(left - half, top - half, right + half, top + half, color);
  fill(left - half, bottom - half, right + half, bottom + half, color);
  fill(left - half, top - half, left + half, bottom + half, color);
  fill(right - half, top - half, right + half, bottom + half, color);
}

void Canvas::line(double x0, double y0, double x1, double y1, Color color) {
  double begin = 0.0, end = 1.0;
  const double dx = x1 - x0, dy = y1 - y0;
  const double edge = line_width_;
  if (!clip_axis(x0, dx, -edge, image_.width() + edge, begin, end) ||
      !clip_axis(y0, dy, -edge, image_.height() + edge, begin, end)) {
    return;
  }
  const double length = std::max(std::abs(dx), std::abs(dy)) * (end - begin);
  const int steps = std::max(1, static_cast<int>(std::ceil(length)));
  for (int i = 0; i <= steps; ++i) {
    const double at = begin + (end - begin) * i / steps;
    dot(x0 + dx * at, y0 + dy * at, line_width_ / 2.0, color);
  }
}

void Canvas::outline(const Corners& corners, Color color) {
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const auto &from = corners[i], &to = corners[(i + 1) % corners.size()];
    line(from[0], from[1], to[0], to[1], color);
  }
}

void Canvas::dot(double x, double y, double radius, Color color) {
  const int x0 = rounded(std::floor(x - radius), 0, image_.width());
  const int x1 = rounded(std::ceil(x + radius), 0, image_.width());
  const int y0 = rounded(std::floor(y - radius), 0, image_.height());
  const int y1 = rounded(std::ceil(y + radius), 0, image_.height());
  for (int row = y0; row < y1; ++row) {
    for (int column = x0; column < x1; ++column) {
      const double away_x = column + 0.5 - x, away_y = row + 0.5 - y;
      if (away_x * away_x + away_y * away_y > radius * radius + 0.25) continue;
      put(image_.row(row) + static_cast<std::ptrdiff_t>(column) * kImageChannels, color);
    }
  }
}

void Canvas::label(double left, double bottom, std::string_view text, Color color) {
  const std::string letters = drawable(text);
  const int width = text_width(letters), height = text_height();
  const int x = rounded(left, 0, std::max(0, image_.width() - width));
  const int y = rounded(bottom - height, 0, std::max(0, image_.height() - height));
  fill(x, y, x + width, y + height, color);
  // ITU-R 601 luma: black letters on light colours.
  const bool light = 299 * color.red + 587 * color.green + 114 * color.blue > 128'000;
  const Color ink = light ? Color{0, 0, 0} : Color{255, 255, 255};
  int letter_x = x + kLetterEdge * letter_dot_;
  for (const char letter : letters) {
    if (letter_x >= image_.width()) break;
    const auto rows = glyph(letter);
    for (int row = 0; row < kGlyphHeight; ++row) {
      for (int column = 0; column < kGlyphWidth; ++column) {
        if ((rows[static_cast<std::size_t>(row)] >> (kGlyphWidth - 1 - column) & 1) == 0) continue;
        const int dot_x = letter_x + column * letter_dot_;
        const int dot_y = y + (kLetterEdge + row) * letter_dot_;
        fill(dot_x, dot_y, dot_x + letter_dot_, dot_y + letter_dot_, ink);
      }
    }
    letter_x += (kGlyphWidth + kLetterGap) * letter_dot_;
  }
}

}  // namespace run_model
