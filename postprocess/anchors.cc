#include "postprocess/anchors.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <run_model/error.h>

namespace run_model {
namespace {

constexpr std::size_t kMaxAnchors = 4'000'000;

struct Sides {
  double width = 0.0, height = 0.0;
};

void check_room(std::size_t there, std::size_t rows, std::size_t columns, std::size_t each) {
  if (each != 0 && rows > (kMaxAnchors - there) / columns / each) {
    throw Error(ErrorKind::kMismatch,
                "the task's anchors are more than " + std::to_string(kMaxAnchors),
                "correct the feature maps or strides in its description");
  }
}

double mediapipe_scale(const MediapipeAnchors& options, std::size_t layer) {
  const std::size_t layers = options.strides.size();
  if (layers == 1) return (options.min_scale + options.max_scale) * 0.5;
  return options.min_scale + (options.max_scale - options.min_scale) * static_cast<double>(layer) /
                                 static_cast<double>(layers - 1);
}

void add_mediapipe_layer(const MediapipeAnchors& options, std::size_t layer,
                         std::vector<Sides>& sides) {
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

// Layers of the same stride share their cells: the anchors of all of them follow each other there.
std::vector<Anchor> mediapipe_anchors(const MediapipeAnchors& options) {
  std::vector<Anchor> anchors;
  for (std::size_t layer = 0; layer < options.strides.size();) {
    const std::size_t first = layer;
    std::vector<Sides> sides;
    // With feature maps of their own, MediaPipe does not look at strides.
    do {
      add_mediapipe_layer(options, layer, sides);
      ++layer;
    } while (layer < options.strides.size() && options.strides[layer] == options.strides[first]);
    const int stride = options.strides[first];
    const auto cells = [stride](int side) { return (side + stride - 1) / stride; };
    const bool given = !options.feature_maps.empty();
    const int rows = given ? options.feature_maps[first][0] : cells(options.input_height);
    const int columns = given ? options.feature_maps[first][1] : cells(options.input_width);
    check_room(anchors.size(), static_cast<std::size_t>(rows), static_cast<std::size_t>(columns),
               sides.size());
    for (int y = 0; y < rows; ++y) {
      for (int x = 0; x < columns; ++x) {
        for (const Sides& side : sides) {
          anchors.push_back({(x + options.anchor_offset_x) / columns,
                             (y + options.anchor_offset_y) / rows,
                             options.fixed_anchor_size ? 1.0 : side.width,
                             options.fixed_anchor_size ? 1.0 : side.height});
        }
      }
    }
  }
  return anchors;
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

std::vector<Anchor> torchvision_anchors(const TorchvisionAnchors& options) {
  const std::vector<double> scales = torchvision_scales(options);
  std::vector<Anchor> anchors;
  for (std::size_t k = 0; k < options.feature_maps.size(); ++k) {
    const double between = std::sqrt(scales[k] * scales[k + 1]);
    std::vector<Sides> sides{{scales[k], scales[k]}, {between, between}};
    for (const double ratio : options.aspect_ratios[k]) {
      const double root = std::sqrt(ratio);
      sides.push_back({scales[k] * root, scales[k] / root});
      sides.push_back({scales[k] / root, scales[k] * root});
    }
    if (options.clip) {
      for (Sides& side : sides) {
        side = {std::clamp(side.width, 0.0, 1.0), std::clamp(side.height, 0.0, 1.0)};
      }
    }
    const auto [rows, columns] = options.feature_maps[k];
    const bool stepped = !options.steps.empty();
    const double cells_x = stepped ? options.input_width / options.steps[k] : columns;
    const double cells_y = stepped ? options.input_height / options.steps[k] : rows;
    check_room(anchors.size(), static_cast<std::size_t>(rows), static_cast<std::size_t>(columns),
               sides.size());
    for (int y = 0; y < rows; ++y) {
      for (int x = 0; x < columns; ++x) {
        for (const Sides& side : sides) {
          anchors.push_back({(x + 0.5) / cells_x, (y + 0.5) / cells_y, side.width, side.height});
        }
      }
    }
  }
  return anchors;
}

}  // namespace

std::vector<Anchor> generate_anchors(const AnchorSource& source) {
  if (const auto* mediapipe = std::get_if<MediapipeAnchors>(&source)) {
    return mediapipe_anchors(*mediapipe);
  }
  if (const auto* torchvision = std::get_if<TorchvisionAnchors>(&source)) {
    return torchvision_anchors(*torchvision);
  }
  return std::get<std::vector<Anchor>>(source);
}

}  // namespace run_model
