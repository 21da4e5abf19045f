// Pictures that networks make of pictures.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "postprocess/kinds.h"
#include "postprocess/map_places.h"
#include "postprocess/output_values.h"

namespace run_model {
namespace {

// The network's numbers, by the colours of a pixel.
class Colors {
 public:
  Colors(const ImageTask& task, const OutputValues& values)
      : channels_(static_cast<std::size_t>(channel_count(task.color_order))) {
    const std::string expected =
        "a picture of " + std::string(channels_ == 1 ? "one channel, " : "three channels, ") +
        std::string(color_order_name(task.color_order)) + ",";
    planes_ = values.planes(task.channels_last, channels_, channels_, expected);
    for (std::size_t c = 0; c < kColors; ++c) {
      // Where the network has this colour.
      const std::size_t channel = channels_ == 1                         ? 0
                                  : task.color_order == ColorOrder::kBgr ? 2 - c
                                                                         : c;
      const auto [black, white] = task.range[channel];
      first_[c] = values.data() + channel * planes_.channel_step;
      black_[c] = static_cast<float>(black);
      factor_[c] = static_cast<float>(255.0 / (white - black));
    }
  }

  const OutputValues::Planes& planes() const { return planes_; }
  std::size_t channels() const { return channels_; }
  float raw(std::size_t c, std::size_t pixel) const {
    return first_[c][pixel * planes_.pixel_step];
  }

  // As torchvision's save_image() rounds.
  std::uint8_t byte(std::size_t c, float value) const {
    const float level = (value - black_[c]) * factor_[c] + 0.5F;
    return static_cast<std::uint8_t>(std::clamp(level, 0.0F, 255.0F));
  }

  bool within(std::size_t c, float value) const {
    const float level = (value - black_[c]) * factor_[c];
    return level >= 0.0F && level <= 255.0F;
  }

  // Further from the range than it is wide: another range was meant.
  bool far_off(std::size_t c, float value) const {
    const float level = (value - black_[c]) * factor_[c];
    return !(level >= -255.0F && level <= 510.0F);
  }

  static constexpr std::size_t kColors = 3;

 private:
  std::size_t channels_;
  OutputValues::Planes planes_;
  std::array<const float*, kColors> first_{};
  std::array<float, kColors> black_{}, factor_{};
};

void look_at_range(const Colors& colors, const OutputValues& values, ImageResult& result) {
  const std::size_t pixels = colors.planes().width * colors.planes().height;
  float least = colors.raw(0, 0), most = least;
  std::size_t beyond = 0;
  for (std::size_t c = 0; c < colors.channels(); ++c) {
    for (std::size_t i = 0; i < pixels; ++i) {
      const float value = colors.raw(c, i);
      least = std::min(least, value);
      most = std::max(most, value);
      if (colors.within(c, value)) continue;
      ++beyond;
      if (!colors.far_off(c, value)) continue;
      values.fail_value(
          "holds " + std::to_string(value) + " as a colour, which is far beyond the \"range\"",
          "correct the range of the task: 0 to 255, 0 to 1 and -1 to 1 are usual");
    }
  }
  result.least = least;
  result.most = most;
  result.cut_off = static_cast<double>(beyond) / static_cast<double>(pixels * colors.channels());
}

// Of the network's own pixels those that show the picture, and no padding of it.
std::pair<std::size_t, std::size_t> shown(const Axis& axis, bool of_region, std::size_t side) {
  double first = axis.first, end = axis.end;
  if (!of_region) {
    first = std::max(first, axis.offset);
    end = std::min(end, axis.picture * axis.scale + axis.offset);
  }
  const double scale = static_cast<double>(side) / axis.input;
  const auto last = static_cast<double>(side);
  const double from = std::clamp(std::round(first * scale), 0.0, last - 1);
  const double to = std::clamp(std::round(end * scale), from + 1, last);
  return {static_cast<std::size_t>(from), static_cast<std::size_t>(to)};
}

void take_own_pixels(const Colors& colors, const PreprocessReport& picture, ImageResult& result) {
  const OutputValues::Planes& planes = colors.planes();
  const bool of_region = picture.region.has_value();
  const auto [left, right] = shown(Axis::across(picture), of_region, planes.width);
  const auto [top, bottom] = shown(Axis::down(picture), of_region, planes.height);
  result.width = static_cast<int>(right - left);
  result.height = static_cast<int>(bottom - top);
  result.pixels.reserve((right - left) * (bottom - top) * Colors::kColors);
  for (std::size_t y = top; y < bottom; ++y) {
    for (std::size_t x = left; x < right; ++x) {
      for (std::size_t c = 0; c < Colors::kColors; ++c) {
        result.pixels.push_back(colors.byte(c, colors.raw(c, y * planes.width + x)));
      }
    }
  }
}

void resample(const Colors& colors, const PreprocessReport& picture, ImageResult& result) {
  const OutputValues::Planes& planes = colors.planes();
  result.width = picture.original_width;
  result.height = picture.original_height;
  const std::size_t pixels =
      static_cast<std::size_t>(result.width) * static_cast<std::size_t>(result.height);
  result.pixels.assign(pixels * Colors::kColors, 0);
  result.seen.assign(pixels, 0);
  each_seen_pixel(
      picture, planes.width, planes.height, [&](std::size_t pixel, const Place& x, const Place& y) {
        const Around around(planes.width, x, y);
        result.seen[pixel] = 1;
        for (std::size_t c = 0; c < Colors::kColors; ++c) {
          result.pixels[pixel * Colors::kColors + c] = colors.byte(
              c, interpolated(around, x, y, [&](std::size_t at) { return colors.raw(c, at); }));
        }
      });
}

}  // namespace

ImageResult make_image(const ImageTask& task, std::span<const NetworkOutput> outputs,
                       const PreprocessReport& picture) {
  const OutputValues values(find_output(outputs, task.output));
  const Colors colors(task, values);
  ImageResult result;
  look_at_range(colors, values, result);
  if (task.of_picture) {
    resample(colors, picture, result);
  } else {
    take_own_pixels(colors, picture, result);
  }
  return result;
}

}  // namespace run_model
