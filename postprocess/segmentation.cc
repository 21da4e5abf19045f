#include "postprocess/segmentation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "postprocess/map_places.h"
#include "postprocess/output_values.h"
#include "postprocess/way_back.h"

namespace run_model {
namespace {

constexpr std::size_t kMostClasses = SegmentationResult::kUnseen;

// A network's map: scores of classes, numbers of classes, or a mask.
struct Map {
  std::size_t width = 0, height = 0, classes = 1;
  std::size_t pixel_step = 1, class_step = 1;
  std::vector<float> mask;              // after the activation
  const float* scores = nullptr;        // of several classes
  std::vector<std::uint8_t> best = {};  // the class of each pixel by itself

  float score(std::size_t pixel, std::size_t c) const {
    return scores[pixel * pixel_step + c * class_step];
  }
};

void read_sides(const OutputValues& values, const NetworkOutput& output, Map& map) {
  // [H, W] with dimensions of 1 before or behind; sides of 1 count where four dimensions tell them.
  const std::vector<std::int64_t>& shape = output.tensor.shape();
  std::vector<std::size_t> sides = values.dimensions();
  if (sides.size() != 2 && shape.size() == 4 && shape[0] == 1) {
    const std::size_t first = shape[1] == 1 ? 2 : 1;
    sides = {static_cast<std::size_t>(shape[first]), static_cast<std::size_t>(shape[first + 1])};
  }
  if (sides.size() != 2 || sides[0] * sides[1] != values.size() || values.size() == 0) {
    values.fail_shape("a map of [1, H, W], [1, 1, H, W] or [1, H, W, 1]");
  }
  map.height = sides[0];
  map.width = sides[1];
}

void read_scores(const SegmentationTask& task, const OutputValues& values,
                 const NetworkOutput& output, std::size_t labels, Map& map) {
  const std::string layout = task.channels_last ? "[1, H, W, C]" : "[1, C, H, W]";
  std::vector<std::size_t> shape;
  for (const std::int64_t side : output.tensor.shape()) {
    shape.push_back(static_cast<std::size_t>(side));
  }
  if (shape.size() == 3) shape.insert(shape.begin(), 1);
  const bool four = shape.size() == 4 && shape[0] == 1 && values.size() > 0;
  if (four) {
    map.classes = shape[task.channels_last ? 3 : 1];
    map.height = shape[task.channels_last ? 1 : 2];
    map.width = shape[task.channels_last ? 2 : 3];
  }
  if (!four || map.classes < 2 || map.classes > kMostClasses ||
      (labels > 0 && map.classes != labels)) {
    values.fail_shape("scores of " + (labels > 0 ? std::to_string(labels) : "2 to 255") +
                      " classes as " + layout);
  }
  map.pixel_step = task.channels_last ? map.classes : 1;
  map.class_step = task.channels_last ? 1 : map.width * map.height;
  map.scores = values.data();
  map.best.assign(map.width * map.height, 0);
  std::vector<float> highest(map.best.size());
  for (std::size_t c = 0; c < map.classes; ++c) {
    for (std::size_t i = 0; i < map.best.size(); ++i) {
      const float score = map.score(i, c);
      if (c == 0 || score > highest[i]) {
        highest[i] = score;
        map.best[i] = static_cast<std::uint8_t>(c);
      }
    }
  }
}

void read_indices(const OutputValues& values, std::size_t labels, Map& map) {
  const std::size_t most = labels > 0 ? std::min(labels, kMostClasses) : kMostClasses;
  float largest = 0.0F;
  for (const float value : values.values()) {
    if (value < 0 || value >= static_cast<float>(most) || value != std::floor(value)) {
      values.fail_value("holds " + std::to_string(value) +
                            ", expected the number of a class, 0 to " + std::to_string(most - 1),
                        "give all classes a label, or correct the description of the task");
    }
    largest = std::max(largest, value);
    map.best.push_back(static_cast<std::uint8_t>(value));
  }
  map.classes = labels > 0 ? labels : static_cast<std::size_t>(largest) + 1;
}

void read_mask(const SegmentationTask& task, const OutputValues& values, Map& map) {
  map.classes = 2;
  map.mask.assign(values.values().begin(), values.values().end());
  if (task.activation == Activation::kSigmoid) {
    for (float& value : map.mask) value = static_cast<float>(sigmoid(value));
  } else {
    values.check_shares(values.values(), "values of a mask");
  }
  const auto threshold = static_cast<float>(task.threshold);
  for (const float value : map.mask) map.best.push_back(value >= threshold ? 1 : 0);
}

float between(float a, float b, float weight) { return a + (b - a) * weight; }

// The class whose interpolated score is best. Where all four pixels agree, so does all between.
std::uint8_t interpolated_class(const Map& map, const Place& x, const Place& y) {
  const std::size_t corners[] = {y.low * map.width + x.low, y.low * map.width + x.high,
                                 y.high * map.width + x.low, y.high * map.width + x.high};
  const std::uint8_t first = map.best[corners[0]];
  if (map.best[corners[1]] == first && map.best[corners[2]] == first &&
      map.best[corners[3]] == first) {
    return first;
  }
  std::size_t best = 0;
  float highest = 0.0F;
  for (std::size_t c = 0; c < map.classes; ++c) {
    const float top = between(map.score(corners[0], c), map.score(corners[1], c), x.weight);
    const float bottom = between(map.score(corners[2], c), map.score(corners[3], c), x.weight);
    const float score = between(top, bottom, y.weight);
    if (c == 0 || score > highest) {
      highest = score;
      best = c;
    }
  }
  return static_cast<std::uint8_t>(best);
}

std::uint8_t interpolated_mask(const Map& map, const Place& x, const Place& y, float threshold) {
  const float* low = map.mask.data() + y.low * map.width;
  const float* high = map.mask.data() + y.high * map.width;
  const float value = between(between(low[x.low], low[x.high], x.weight),
                              between(high[x.low], high[x.high], x.weight), y.weight);
  return value >= threshold ? 1 : 0;
}

std::uint8_t class_at(const SegmentationTask& task, const Map& map, const Place& x,
                      const Place& y) {
  if (!task.bilinear) return map.best[y.nearest * map.width + x.nearest];
  if (task.form == SegmentationForm::kMask) {
    return interpolated_mask(map, x, y, static_cast<float>(task.threshold));
  }
  return interpolated_class(map, x, y);
}

}  // namespace

SegmentationResult segment(const SegmentationTask& task, std::size_t labels,
                           std::span<const NetworkOutput> outputs,
                           const PreprocessReport& picture) {
  const NetworkOutput& output = find_output(outputs, task.output);
  const OutputValues values(output);
  Map map;
  if (task.form == SegmentationForm::kScores) {
    read_scores(task, values, output, labels, map);
  } else {
    read_sides(values, output, map);
    if (task.form == SegmentationForm::kIndices) {
      read_indices(values, labels, map);
    } else {
      read_mask(task, values, map);
    }
  }
  const PictureRegion* region = picture.region ? &*picture.region : nullptr;
  const Axis across(picture.original_width, picture.input_width, picture.scale_x, picture.offset_x,
                    region, true);
  const Axis down(picture.original_height, picture.input_height, picture.scale_y, picture.offset_y,
                  region, false);
  SegmentationResult result;
  result.width = picture.original_width;
  result.height = picture.original_height;
  result.class_count = map.classes;
  result.classes.reserve(static_cast<std::size_t>(result.width) *
                         static_cast<std::size_t>(result.height));
  const auto add = [&](const Place& x, const Place& y) {
    result.classes.push_back(x.seen && y.seen ? class_at(task, map, x, y)
                                              : SegmentationResult::kUnseen);
  };
  const WayBack way(picture);
  if (way.turned()) {
    for (int y = 0; y < result.height; ++y) {
      for (int x = 0; x < result.width; ++x) {
        const auto [input_x, input_y] = way.to_input(x + 0.5, y + 0.5);
        add(across.at(input_x, map.width), down.at(input_y, map.height));
      }
    }
    return result;
  }
  const std::vector<Place> columns = across.all(map.width);
  for (const Place& y : down.all(map.height)) {
    for (const Place& x : columns) add(x, y);
  }
  return result;
}

}  // namespace run_model
