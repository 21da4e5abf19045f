// Where pixels of the picture lie on a network's map, which covers the whole input.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include <run_model/geometry.h>

namespace run_model {

// Where the middle of a pixel of the picture lies between pixels of the map, along one axis.
struct Place {
  std::size_t low = 0, high = 0;
  float weight = 0.0F;  // of `high`
  std::size_t nearest = 0;
  bool seen = false;
};

// `first` and `end`: the part of the input that is of the region.
inline Place place_of(double in_input, int input, double first, double end, std::size_t map) {
  const double last = static_cast<double>(map) - 1;
  const double in_map = in_input * static_cast<double>(map) / input;
  const double between = std::clamp(in_map - 0.5, 0.0, last);
  Place place;
  place.seen = in_input >= first && in_input <= end;
  place.low = static_cast<std::size_t>(between);
  place.high = std::min(place.low + 1, map - 1);
  place.weight = static_cast<float>(between - static_cast<double>(place.low));
  place.nearest = static_cast<std::size_t>(std::clamp(std::floor(in_map), 0.0, last));
  return place;
}

// How one axis of the picture lies in the input.
struct Axis {
  int picture = 0, input = 0;
  double scale = 1.0, offset = 0.0;
  double first = 0.0, end = 0.0;  // of the input: what is of the region

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

}  // namespace run_model
