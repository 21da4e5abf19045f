#include <run_model/draw.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <string_view>

#include <run_model/error.h>
#include "drawing/canvas.h"
#include "drawing/palette.h"

namespace run_model {
namespace {

std::string scored(const std::string& name, double score) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), " %.2f", score);
  return name + text.data();
}

void draw_instance(Canvas& canvas, const InstanceMask& mask, const Color& color) {
  std::size_t pixel = 0;
  for (int y = mask.top; y < mask.top + mask.height; ++y) {
    for (int x = mask.left; x < mask.left + mask.width; ++x) {
      if (mask.pixels[pixel++] != 0) canvas.blend(x, y, color);
    }
  }
}

void draw_detections(Canvas& canvas, const DetectionResult& result) {
  // The best last, so that it is on top.
  for (auto found = result.detections.rbegin(); found != result.detections.rend(); ++found) {
    const Color color = class_color(found->class_index);
    const Box& box = found->box;
    if (found->mask) draw_instance(canvas, *found->mask, color);
    if (found->corners) {
      canvas.outline(*found->corners, color);
    } else {
      canvas.frame(box.left, box.top, box.right, box.bottom, color);
    }
    for (const Keypoint& point : found->keypoints) {
      canvas.dot(point.x, point.y, 1.5 * canvas.line_width() + 1, color);
    }
    const std::string name =
        found->label.empty() ? std::to_string(found->class_index) : found->label;
    canvas.label(box.left - canvas.line_width() / 2.0, box.top, scored(name, found->score), color);
  }
}

bool has_background(const Task& task) {
  if (std::get<SegmentationTask>(task.what).form == SegmentationForm::kMask) return true;
  static constexpr std::array<std::string_view, 4> kNames{"background", "_background_",
                                                          "__background__", "unlabeled"};
  return !task.labels.empty() &&
         std::find(kNames.begin(), kNames.end(), task.labels.front()) != kNames.end();
}

void draw_mask(Canvas& canvas, const Task& task, const SegmentationResult& result) {
  const bool background = has_background(task);
  std::size_t pixel = 0;
  for (int y = 0; y < result.height; ++y) {
    for (int x = 0; x < result.width; ++x, ++pixel) {
      const std::uint8_t found = result.classes[pixel];
      if (found == SegmentationResult::kUnseen || (found == 0 && background)) continue;
      canvas.blend(x, y, class_color(found));
    }
  }
}

// From the 1st to the 99th of a hundred numbers, so that a few odd ones do not make the rest alike.
void draw_map(Image& image, const MapTask& task, const MapResult& result) {
  const MapStatistics found = map_statistics(result, {0.01, 0.99});
  const double least = found.quantiles[0];
  const double width = found.quantiles[1] - least;
  const bool near_is_small = task.quantity == MapQuantity::kDepth;
  std::uint8_t* pixel = image.data();
  for (const float value : result.values) {
    if (!std::isnan(value)) {
      const double share = width > 0 ? std::clamp((value - least) / width, 0.0, 1.0) : 0.5;
      const Color color = inferno(near_is_small ? 1 - share : share);
      pixel[0] = color.red;
      pixel[1] = color.green;
      pixel[2] = color.blue;
    }
    pixel += kImageChannels;
  }
}

void draw_image(Image& image, const ImageResult& result) {
  if (result.seen.empty()) {
    image = Image(result.width, result.height);
    std::copy(result.pixels.begin(), result.pixels.end(), image.data());
    return;
  }
  for (std::size_t i = 0; i < result.seen.size(); ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i * kImageChannels);
    if (result.seen[i] != 0) {
      std::copy_n(result.pixels.begin() + at, kImageChannels, image.data() + at);
    }
  }
}

void check_same_size(int width, int height, const Image& image, const char* what) {
  if (width == image.width() && height == image.height()) return;
  throw Error(ErrorKind::kMismatch,
              std::string("the ") + what + " is not of the picture that it is drawn on");
}

void draw_landmarks(Canvas& canvas, const LandmarksTask& task, const LandmarksResult& result) {
  if (!result.present) return;
  const Color lines = class_color(2), dots = class_color(0);
  for (const auto& [from, to] : task.connections) {
    const Landmark &a = result.points[from], &b = result.points[to];
    canvas.line(a.x, a.y, b.x, b.y, lines);
  }
  // Hundreds of points are a face, and need smaller ones.
  const double radius =
      result.points.size() > 100 ? canvas.line_width() * 0.75 : 1.5 * canvas.line_width() + 1;
  for (const Landmark& point : result.points) canvas.dot(point.x, point.y, radius, dots);
}

}  // namespace

void draw_result(Image& image, const Task& task, const TaskResult& result) {
  Canvas canvas(image);
  if (const auto* detections = std::get_if<DetectionResult>(&result)) {
    draw_detections(canvas, *detections);
  } else if (const auto* segmentation = std::get_if<SegmentationResult>(&result)) {
    check_same_size(segmentation->width, segmentation->height, image, "mask");
    draw_mask(canvas, task, *segmentation);
  } else if (const auto* landmarks = std::get_if<LandmarksResult>(&result)) {
    draw_landmarks(canvas, std::get<LandmarksTask>(task.what), *landmarks);
  } else if (const auto* map = std::get_if<MapResult>(&result)) {
    check_same_size(map->width, map->height, image, "map");
    draw_map(image, std::get<MapTask>(task.what), *map);
  } else if (const auto* made = std::get_if<ImageResult>(&result)) {
    if (!made->seen.empty()) check_same_size(made->width, made->height, image, "image");
    draw_image(image, *made);
  } else if (const auto* classes = std::get_if<ClassificationResult>(&result)) {
    if (classes->classes.empty()) return;
    const ClassificationResult::Class& best = classes->classes.front();
    const std::string name = best.label.empty() ? std::to_string(best.index) : best.label;
    canvas.label(0, canvas.text_height(), scored(name, best.probability), class_color(best.index));
  }
}

void draw_results(Image& image, std::span<const Task> tasks, std::span<const TaskResult> results) {
  for (const bool below : {true, false}) {
    for (std::size_t i = 0; i < results.size(); ++i) {
      const bool covers = std::holds_alternative<SegmentationResult>(results[i]) ||
                          std::holds_alternative<MapResult>(results[i]) ||
                          std::holds_alternative<ImageResult>(results[i]);
      if (covers == below) draw_result(image, tasks[i], results[i]);
    }
  }
}

}  // namespace run_model
