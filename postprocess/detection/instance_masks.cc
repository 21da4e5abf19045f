#include "postprocess/detection/instance_masks.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "postprocess/way_back.h"

namespace run_model {
namespace {

// Whole pixels that a stretch touches, within a side.
struct Stretch {
  int first = 0, count = 0;
};

Stretch stretch(double low, double high, int side) {
  const int first = static_cast<int>(std::clamp(std::floor(low), 0.0, static_cast<double>(side)));
  const int end = static_cast<int>(std::clamp(std::ceil(high), 0.0, static_cast<double>(side)));
  return {first, std::max(0, end - first)};
}

// Places of the map that are between the middles of a stretch of the input, and one around them.
Stretch on_map(double low, double high, int input, std::size_t map) {
  const double scale = static_cast<double>(map) / input;
  return stretch(low * scale - 1.5, high * scale + 1.5, static_cast<int>(map));
}

}  // namespace

MaskMaker::MaskMaker(const InstanceMasks& masks, std::span<const NetworkOutput> outputs,
                     const PreprocessReport& picture, std::size_t rows)
    : masks_(masks), values_(find_output(outputs, masks.output)), picture_(picture) {
  const OutputValues::Planes planes =
      masks.count == 0 ? values_.maps_of_rows(rows)
                       : values_.planes(masks.channels_last, masks.count, masks.count,
                                        std::to_string(masks.count) + " prototypes of masks");
  height_ = planes.height;
  width_ = planes.width;
  pixel_step_ = planes.pixel_step;
  prototype_step_ = planes.channel_step;
}

double MaskMaker::interpolated(const std::vector<float>& sums, const Place& x, const Place& y,
                               const Region& part) const {
  const auto at = [&](std::size_t column, std::size_t row) {
    return sums[(row - static_cast<std::size_t>(part.y)) * static_cast<std::size_t>(part.width) +
                column - static_cast<std::size_t>(part.x)];
  };
  const auto between = [](double a, double b, double weight) { return a + (b - a) * weight; };
  return between(between(at(x.low, y.low), at(x.high, y.low), x.weight),
                 between(at(x.low, y.high), at(x.high, y.high), x.weight), y.weight);
}

std::optional<Box> MaskMaker::part_above(std::size_t row) const {
  std::size_t left = width_, right = 0, top = height_, bottom = 0;
  const float* value = values_.data() + row * prototype_step_;
  for (std::size_t y = 0; y < height_; ++y) {
    for (std::size_t x = 0; x < width_; ++x, ++value) {
      if (*value <= masks_.threshold) continue;
      left = std::min(left, x);
      right = std::max(right, x + 1);
      top = std::min(top, y);
      bottom = y + 1;
    }
  }
  if (left >= right) return std::nullopt;
  const double x_scale = picture_.input_width / static_cast<double>(width_);
  const double y_scale = picture_.input_height / static_cast<double>(height_);
  // As far as it is interpolated.
  return Box{(static_cast<double>(left) - 1) * x_scale, (static_cast<double>(top) - 1) * y_scale,
             (static_cast<double>(right) + 1) * x_scale,
             (static_cast<double>(bottom) + 1) * y_scale};
}

InstanceMask MaskMaker::make(const DecodedBox& decoded, const Box& of_box, std::size_t row) const {
  Box box = decoded.box, in_picture = of_box;
  if (masks_.count == 0) {
    const std::optional<Box> part = part_above(row);
    if (!part) return {};
    box = *part;
    in_picture = WayBack(picture_).box(box);
  }
  const Stretch columns = stretch(in_picture.left, in_picture.right, picture_.original_width);
  const Stretch rows = stretch(in_picture.top, in_picture.bottom, picture_.original_height);
  InstanceMask mask{columns.first, rows.first, columns.count, rows.count, {}};
  mask.pixels.assign(static_cast<std::size_t>(columns.count) * static_cast<std::size_t>(rows.count),
                     0);
  const Stretch across = on_map(box.left, box.right, picture_.input_width, width_);
  const Stretch down = on_map(box.top, box.bottom, picture_.input_height, height_);
  const Region part{across.first, down.first, across.count, down.count};
  if (part.width == 0 || part.height == 0 || mask.pixels.empty()) return mask;
  std::vector<float> sums(static_cast<std::size_t>(part.width) *
                          static_cast<std::size_t>(part.height));
  const auto add = [&](std::size_t c, float factor) {
    float* to = sums.data();
    for (int y = 0; y < part.height; ++y) {
      const float* from =
          values_.data() + c * prototype_step_ +
          (static_cast<std::size_t>(part.y + y) * width_ + static_cast<std::size_t>(part.x)) *
              pixel_step_;
      for (int x = 0; x < part.width; ++x, from += pixel_step_) *to++ += factor * *from;
    }
  };
  if (masks_.count == 0) add(row, 1.0F);
  for (std::size_t c = 0; c < decoded.mask_factors.size(); ++c) add(c, decoded.mask_factors[c]);
  const double least = masks_.count == 0 ? masks_.threshold : 0.0;
  const Axis x_axis = Axis::across(picture_), y_axis = Axis::down(picture_);
  const WayBack way(picture_);
  std::uint8_t* pixel = mask.pixels.data();
  for (int y = mask.top; y < mask.top + mask.height; ++y) {
    for (int x = mask.left; x < mask.left + mask.width; ++x, ++pixel) {
      const auto [input_x, input_y] = way.to_input(x + 0.5, y + 0.5);
      if (input_x < box.left || input_x >= box.right || input_y < box.top ||
          input_y >= box.bottom) {
        continue;
      }
      const Place column = x_axis.at(input_x, width_), line = y_axis.at(input_y, height_);
      if (!column.seen || !line.seen) continue;
      *pixel = interpolated(sums, column, line, part) > least ? 1 : 0;
    }
  }
  return mask;
}

}  // namespace run_model
