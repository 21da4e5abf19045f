// Where pixels of the picture lie on a network's map, which covers the whole input.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <run_model/preprocessing.h>
#include "postprocess/way_back.h"

namespace run_model {

// Where the middle of a pixel of the picture lies between pixels of the map, along one axis.
struct Place {
  std::uint32_t low = 0, high = 0;
  std::uint32_t nearest = 0;
  float weight = 0.0F;  // of `high`
  float beyond = 0.0F;  // the middle of the first pixel (below 0) or of the last
  bool seen = false;
};

// `first` and `end`: the part of the input that is of the region.
inline Place place_of(double in_input, int input, double first, double end, std::size_t map) {
  const double last = static_cast<double>(map) - 1;
  const double in_map = in_input * static_cast<double>(map) / input;
  const double between = std::clamp(in_map - 0.5, 0.0, last);
  Place place;
  place.beyond = static_cast<float>(in_map - 0.5 - between);
  place.seen = in_input >= first && in_input <= end;
  place.low = static_cast<std::uint32_t>(between);
  place.high = std::min(place.low + 1, static_cast<std::uint32_t>(map - 1));
  place.weight = static_cast<float>(between - place.low);
  place.nearest = static_cast<std::uint32_t>(std::clamp(in_map, 0.0, last));
  return place;
}

// How one axis of the picture lies in the input.
struct Axis {
  int picture = 0, input = 0;
  double scale = 1.0, offset = 0.0;
  double first = 0.0, end = 0.0;  // of the input: what is of the region

  static Axis across(const PreprocessReport& report) {
    return {report.original_width,
            report.input_width,
            report.scale_x,
            report.offset_x,
            report.region ? &*report.region : nullptr,
            true};
  }

  static Axis down(const PreprocessReport& report) {
    return {report.original_height,
            report.input_height,
            report.scale_y,
            report.offset_y,
            report.region ? &*report.region : nullptr,
            false};
  }

  Axis(int picture_side, int input_side, double scale_of, double offset_of,
       const PictureRegion* region, bool horizontal)
      : picture(picture_side),
        input(input_side),
        scale(scale_of),
        offset(offset_of),
        end(input_side) {
    if (region == nullptr) return;
    const double begin = horizontal ? region->x : region->y;
    const double side = horizontal ? region->width : region->height;
    first = std::max(0.0, begin * scale + offset);
    end = std::min(end, (begin + side) * scale + offset);
  }

  Place at(double in_input, std::size_t map) const {
    return place_of(in_input, input, first, end, map);
  }

  // Of the middles of all of the picture's pixels.
  std::vector<Place> all(std::size_t map) const {
    std::vector<Place> list;
    list.reserve(static_cast<std::size_t>(picture));
    for (int i = 0; i < picture; ++i) list.push_back(at((i + 0.5) * scale + offset, map));
    return list;
  }
};

// Calls visit(pixel, x, y) with the places on the map of each pixel of the picture that was seen,
// row by row.
template <typename Visit>
void each_seen_pixel(const PreprocessReport& report, std::size_t map_width, std::size_t map_height,
                     Visit&& visit) {
  const Axis across = Axis::across(report), down = Axis::down(report);
  const WayBack way(report);
  std::size_t pixel = 0;
  if (way.turned()) {
    for (int y = 0; y < report.original_height; ++y) {
      for (int x = 0; x < report.original_width; ++x, ++pixel) {
        const auto [input_x, input_y] = way.to_input(x + 0.5, y + 0.5);
        const Place in_x = across.at(input_x, map_width), in_y = down.at(input_y, map_height);
        if (in_x.seen && in_y.seen) visit(pixel, in_x, in_y);
      }
    }
    return;
  }
  const std::vector<Place> columns = across.all(map_width), rows = down.all(map_height);
  for (const Place& y : rows) {
    for (const Place& x : columns) {
      if (x.seen && y.seen) visit(pixel, x, y);
      ++pixel;
    }
  }
}

// The pixels of the map around a place.
struct Around {
  std::size_t low_low, low_high, high_low, high_high;  // row, column

  Around(std::size_t map_width, const Place& x, const Place& y)
      : low_low(y.low * map_width + x.low),
        low_high(y.low * map_width + x.high),
        high_low(y.high * map_width + x.low),
        high_high(y.high * map_width + x.high) {}
};

inline float between(float a, float b, float weight) { return a + (b - a) * weight; }

// Of what value(pixel) says of the map.
template <typename Value>
float interpolated(const Around& around, const Place& x, const Place& y, Value&& value) {
  return between(between(value(around.low_low), value(around.low_high), x.weight),
                 between(value(around.high_low), value(around.high_high), x.weight), y.weight);
}

}  // namespace run_model
