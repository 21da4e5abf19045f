#include "postprocess/detection/anchors.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <run_model/error.h>

namespace run_model {
namespace {

constexpr std::size_t kMaxAnchors = 4'000'000;

double mediapipe_scale(const MediapipeAnchors& options, std::size_t layer) {
  const std::size_t layers = options.strides.size();
  if (layers == 1) return (options.min_scale + options.max_scale) * 0.5;
  return options.min_scale + (options.max_scale - options.min_scale) * static_cast<double>(layer) /
                                 static_cast<double>(layers - 1);
}

// Adds the sides of a layer's anchors.
void add_mediapipe_layer(const MediapipeAnchors& options, std::size_t layer,
                         std::vector<AnchorGrid::Sides>& sides) {
  const double scale = mediapipe_scale(options, layer);
  const auto add = [&](double size, double ratio) {
    sides.push_back({size * std::sqrt(ratio), size / std::sqrt(ratio)});
  };
  if (layer == 0 && options.reduce_boxes_in_lowest_layer) {
    add(0.1, 1.0);
    add(scale, 2.0);
    add(scale, 0.5);
    return;
  }
  for (const double ratio : options.aspect_ratios) add(scale, ratio);
  if (options.interpolated_scale_aspect_ratio > 0.0) {
    const bool last = layer + 1 == options.strides.size();
    const double next = last ? 1.0 : mediapipe_scale(options, layer + 1);
    add(std::sqrt(scale * next), options.interpolated_scale_aspect_ratio);
  }
}

std::vector<double> torchvision_scales(const TorchvisionAnchors& options) {
  if (!options.scales.empty()) return options.scales;
  const std::size_t maps = options.feature_maps.size();
  if (maps == 1) return {options.min_ratio, options.max_ratio};
  std::vector<double> scales;
  for (std::size_t k = 0; k < maps; ++k) {
    scales.push_back(options.min_ratio + (options.max_ratio - options.min_ratio) *
                                             static_cast<double>(k) /
                                             (static_cast<double>(maps) - 1.0));
  }
  scales.push_back(1.0);
  return scales;
}

}  // namespace

AnchorGrid::AnchorGrid(const AnchorSource& source, double input_width, double input_height) {
  if (const auto* list = std::get_if<std::vector<Anchor>>(&source)) {
    list_ = list;
  } else if (const auto* mediapipe = std::get_if<MediapipeAnchors>(&source)) {
    add_mediapipe(*mediapipe);
  } else if (const auto* torchvision = std::get_if<TorchvisionAnchors>(&source)) {
    add_default_boxes(*torchvision);
  } else {
    add_pyramid(std::get<PyramidAnchors>(source), input_width, input_height);
  }
}

Anchor AnchorGrid::at(std::size_t index) const {
  if (list_ != nullptr) return (*list_)[index];
  const CellMaps::Cell cell = cells_.at(index);
  const Map& map = maps_[cell.map];
  const Sides& sides = map.sides[cell.number];
  return {(static_cast<double>(cell.column) + map.offset_x) / map.cells_x,
          (static_cast<double>(cell.row) + map.offset_y) / map.cells_y, sides.width, sides.height};
}

void AnchorGrid::add_map(std::array<int, 2> rows_columns, Map map) {
  const auto rows = static_cast<std::size_t>(rows_columns[0]);
  const auto columns = static_cast<std::size_t>(rows_columns[1]);
  // Without any side it has no anchors.
  if (map.sides.empty()) return;
  if (rows > (kMaxAnchors - cells_.size()) / columns / map.sides.size()) {
    throw Error(ErrorKind::kMismatch,
                "the task's anchors are more than " + std::to_string(kMaxAnchors),
                "correct the feature maps or strides in its description");
  }
  cells_.add(rows, columns, map.sides.size());
  maps_.push_back(std::move(map));
}

// Layers of the same stride share their cells: the anchors of all of them follow each other there.
void AnchorGrid::add_mediapipe(const MediapipeAnchors& options) {
  for (std::size_t layer = 0; layer < options.strides.size();) {
    const std::size_t first = layer;
    Map map;
    // With feature maps of their own, MediaPipe does not look at strides.
    do {
      add_mediapipe_layer(options, layer, map.sides);
      ++layer;
    } while (layer < options.strides.size() && options.strides[layer] == options.strides[first]);
    if (options.fixed_anchor_size) std::fill(map.sides.begin(), map.sides.end(), Sides{1.0, 1.0});
    const int stride = options.strides[first];
    const auto cells = [stride](int side) { return (side + stride - 1) / stride; };
    const std::array<int, 2> size =
        options.feature_maps.empty()
            ? std::array{cells(options.input_height), cells(options.input_width)}
            : options.feature_maps[first];
    map.offset_x = options.anchor_offset_x;
    map.offset_y = options.anchor_offset_y;
    map.cells_x = size[1];
    map.cells_y = size[0];
    add_map(size, std::move(map));
  }
}

void AnchorGrid::add_default_boxes(const TorchvisionAnchors& options) {
  const std::vector<double> scales = torchvision_scales(options);
  for (std::size_t k = 0; k < options.feature_maps.size(); ++k) {
    const double between = std::sqrt(scales[k] * scales[k + 1]);
    Map map;
    map.sides = {{scales[k], scales[k]}, {between, between}};
    for (const double ratio : options.aspect_ratios[k]) {
      const double root = std::sqrt(ratio);
      map.sides.push_back({scales[k] * root, scales[k] / root});
      map.sides.push_back({scales[k] / root, scales[k] * root});
    }
    if (options.clip) {
      for (Sides& side : map.sides) {
        side = {std::clamp(side.width, 0.0, 1.0), std::clamp(side.height, 0.0, 1.0)};
      }
    }
    const bool stepped = !options.steps.empty();
    map.cells_x = stepped ? options.input_width / options.steps[k] : options.feature_maps[k][1];
    map.cells_y = stepped ? options.input_height / options.steps[k] : options.feature_maps[k][0];
    add_map(options.feature_maps[k], std::move(map));
  }
}

void AnchorGrid::add_pyramid(const PyramidAnchors& options, double input_width,
                             double input_height) {
  for (std::size_t k = 0; k < options.feature_maps.size(); ++k) {
    const auto [rows, columns] = options.feature_maps[k];
    const double stride_x = std::floor(input_width / columns);
    const double stride_y = std::floor(input_height / rows);
    if (stride_x < 1 || stride_y < 1) {
      throw Error(ErrorKind::kMismatch,
                  "the task's feature map " + std::to_string(k) + " has " + std::to_string(rows) +
                      " x " + std::to_string(columns) + " cells, more than the input has pixels",
                  "correct the feature maps in its description: they are [height, width]");
    }
    Map map;
    const auto add = [&](double size, double ratio) {
      const double root = std::sqrt(ratio);
      double width = size / root, height = size * root;
      if (options.round) {
        // Half sides, and of two that are as near the even one, as torch.round() has it.
        width = 2 * std::nearbyint(width / 2);
        height = 2 * std::nearbyint(height / 2);
      }
      map.sides.push_back({width / input_width, height / input_height});
    };
    if (options.sizes_first) {
      for (const double size : options.sizes[k]) {
        for (const double ratio : options.aspect_ratios[k]) add(size, ratio);
      }
    } else {
      for (const double ratio : options.aspect_ratios[k]) {
        for (const double size : options.sizes[k]) add(size, ratio);
      }
    }
    map.offset_x = map.offset_y = options.offset;
    map.cells_x = input_width / stride_x;
    map.cells_y = input_height / stride_y;
    add_map(options.feature_maps[k], std::move(map));
  }
}

}  // namespace run_model
