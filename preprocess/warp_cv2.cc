#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <utility>

#include "preprocess/resizers.h"

namespace run_model {
namespace {

using Point = std::array<float, 2>;
// 3 x 3, row by row.
using Matrix = std::array<double, 9>;

constexpr int kUnknowns = 8;
constexpr int kPlaceBits = 5;  // places are multiples of 1/32 of a pixel
constexpr int kPlaces = 1 << kPlaceBits;
constexpr int kProductBits = 15;

// cv::boxPoints: left bottom, left top, right top, right bottom of the region before it is turned.
std::array<Point, 4> corners(const PictureRegion& region) {
  const auto width = static_cast<float>(region.width), height = static_cast<float>(region.height);
  const auto x = static_cast<float>(region.x + region.width / 2);
  const auto y = static_cast<float>(region.y + region.height / 2);
  const double angle = static_cast<float>(region.angle) * std::numbers::pi / 180.0;
  const float b = static_cast<float>(std::cos(angle)) * 0.5F;
  const float a = static_cast<float>(std::sin(angle)) * 0.5F;
  const Point first{x - a * height - b * width, y + b * height - a * width};
  const Point second{x + a * height - b * width, y - b * height - a * width};
  return {first, second, Point{2 * x - first[0], 2 * y - first[1]},
          Point{2 * x - second[0], 2 * y - second[1]}};
}

// cv::getPerspectiveTransform, and its Gaussian elimination: the last bits of the matrix decide to
// which of two places a pixel half-way between them goes.
Matrix transform(const std::array<Point, 4>& from, const std::array<Point, 4>& to) {
  std::array<std::array<double, kUnknowns>, kUnknowns> a{};
  std::array<double, kUnknowns> b{};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto [x, y] = from[i];
    for (std::size_t axis = 0; axis < 2; ++axis) {
      std::array<double, kUnknowns>& row = a[i + 4 * axis];
      row[3 * axis] = x;
      row[3 * axis + 1] = y;
      row[3 * axis + 2] = 1.0;
      row[6] = -x * to[i][axis];
      row[7] = -y * to[i][axis];
      b[i + 4 * axis] = to[i][axis];
    }
  }
  for (std::size_t i = 0; i < kUnknowns; ++i) {
    std::size_t pivot = i;
    for (std::size_t j = i + 1; j < kUnknowns; ++j) {
      if (std::abs(a[j][i]) > std::abs(a[pivot][i])) pivot = j;
    }
    std::swap(a[i], a[pivot]);
    std::swap(b[i], b[pivot]);
    const double inverse = -1 / a[i][i];
    for (std::size_t j = i + 1; j < kUnknowns; ++j) {
      const double factor = a[j][i] * inverse;
      for (std::size_t k = i + 1; k < kUnknowns; ++k) a[j][k] += factor * a[i][k];
      b[j] += factor * b[i];
    }
  }
  for (std::size_t i = kUnknowns; i-- > 0;) {
    double sum = b[i];
    for (std::size_t k = i + 1; k < kUnknowns; ++k) sum -= a[i][k] * b[k];
    b[i] = sum / a[i][i];
  }
  return {b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], 1.0};
}

// cv::invert of 3 x 3 doubles.
Matrix inverse_of(const Matrix& m) {
  const double determinant = m[0] * (m[4] * m[8] - m[5] * m[7]) -
                             m[1] * (m[3] * m[8] - m[5] * m[6]) +
                             m[2] * (m[3] * m[7] - m[4] * m[6]);
  const double d = 1 / determinant;
  return {(m[4] * m[8] - m[5] * m[7]) * d, (m[2] * m[7] - m[1] * m[8]) * d,
          (m[1] * m[5] - m[2] * m[4]) * d, (m[5] * m[6] - m[3] * m[8]) * d,
          (m[0] * m[8] - m[2] * m[6]) * d, (m[2] * m[3] - m[0] * m[5]) * d,
          (m[3] * m[7] - m[4] * m[6]) * d, (m[1] * m[6] - m[0] * m[7]) * d,
          (m[0] * m[4] - m[1] * m[3]) * d};
}

int whole_place(double value) {
  constexpr double kLeast = std::numeric_limits<int>::min(),
                   kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::nearbyint(std::clamp(value, kLeast, kMost)));
}

// The picture, and what lies outside it.
class Surroundings {
 public:
  Surroundings(const Image& image, std::optional<std::uint8_t> outside) : image_(image) {
    edge_ = !outside;
    outside_.fill(outside.value_or(0));
  }

  const std::uint8_t* at(int x, int y) const {
    const int inside_x = std::clamp(x, 0, image_.width() - 1);
    const int inside_y = std::clamp(y, 0, image_.height() - 1);
    if (!edge_ && (x != inside_x || y != inside_y)) return outside_.data();
    return image_.row(inside_y) + static_cast<std::ptrdiff_t>(inside_x) * kImageChannels;
  }

 private:
  const Image& image_;
  bool edge_ = true;
  std::array<std::uint8_t, kImageChannels> outside_{};
};

// The pixel at (x, y), in 32nds of a pixel.
void blend_places(const Surroundings& source, int x, int y, std::uint8_t* to) {
  const int left = x >> kPlaceBits, top = y >> kPlaceBits;
  const int weight_x = x & (kPlaces - 1), weight_y = y & (kPlaces - 1);
  const std::uint8_t* corner[] = {source.at(left, top), source.at(left + 1, top),
                                  source.at(left, top + 1), source.at(left + 1, top + 1)};
  const int weight[] = {
      (kPlaces - weight_x) * (kPlaces - weight_y) * kPlaces,
      weight_x * (kPlaces - weight_y) * kPlaces,
      (kPlaces - weight_x) * weight_y * kPlaces,
      weight_x * weight_y * kPlaces,
  };
  for (int c = 0; c < kImageChannels; ++c) {
    int sum = 1 << (kProductBits - 1);
    for (int i = 0; i < 4; ++i) sum += corner[i][c] * weight[i];
    to[c] = static_cast<std::uint8_t>(sum >> kProductBits);
  }
}

}  // namespace

Image warp_cv2_linear(const Image& image, const PictureRegion& region, int width, int height,
                      std::optional<std::uint8_t> outside, const Region& window) {
  const auto right = static_cast<float>(width), bottom = static_cast<float>(height);
  const Matrix m =
      inverse_of(transform(corners(region), {Point{0.0F, bottom}, Point{0.0F, 0.0F},
                                             Point{right, 0.0F}, Point{right, bottom}}));
  // OpenCV counts columns from the left of the block that they are in.
  const int block = std::min(1024 / std::min(16, height), width);
  const Surroundings source(image, outside);
  Image result(window.width, window.height);
  for (int j = 0; j < window.height; ++j) {
    const double y = window.y + j;
    std::uint8_t* to = result.row(j);
    for (int i = 0; i < window.width; ++i, to += kImageChannels) {
      const int column = window.x + i;
      const double in_block = column % block, x = column - in_block;
      const double depth = (m[6] * x + m[7] * y + m[8]) + m[6] * in_block;
      const double scale = depth != 0.0 ? kPlaces / depth : 0.0;
      blend_places(source, whole_place(((m[0] * x + m[1] * y + m[2]) + m[0] * in_block) * scale),
                   whole_place(((m[3] * x + m[4] * y + m[5]) + m[3] * in_block) * scale), to);
    }
  }
  return result;
}

}  // namespace run_model
