#include <array>
#include <string>

#include "base/text.h"
#include "run_model/run_model/report/results.h"
#include "run_model/shared/formatted.h"

namespace run_model {
namespace {

constexpr std::size_t kPointsShown = 5;

std::string name_of(std::size_t index, const std::string& label) {
  return label.empty() ? "class " + std::to_string(index) : label;
}

std::string detections_text(const DetectionResult& result) {
  std::string text = counted(result.detections.size(), "detection") + "\n";
  if (result.detections.empty()) return text;
  text += "   #   score     left      top    right   bottom  class\n";
  for (std::size_t i = 0; i < result.detections.size(); ++i) {
    const Detection& found = result.detections[i];
    text += formatted("%4zu  %6.4f %8.1f %8.1f %8.1f %8.1f  ", i + 1, found.score, found.box.left,
                      found.box.top, found.box.right, found.box.bottom) +
            name_of(found.class_index, found.label) + "\n";
    if (found.corners) {
      text += "      corners:";
      for (const auto& [x, y] : *found.corners) text += formatted(" (%.1f, %.1f)", x, y);
      text += formatted(", angle %.1f degrees\n", side_angle(*found.corners));
    }
    if (found.keypoints.empty()) continue;
    text += "      keypoints:";
    for (const Keypoint& point : found.keypoints)
      text += formatted(" (%.1f, %.1f)", point.x, point.y);
    text += "\n";
  }
  return text;
}

std::string segmentation_text(const Task& task, const SegmentationResult& result) {
  std::array<std::size_t, 256> pixels{};
  for (const std::uint8_t found : result.classes) ++pixels[found];
  std::string text = formatted("Segmentation, %dx%d pixels\n", result.width, result.height);
  const auto line = [&](std::size_t count, const std::string& name) {
    if (count == 0) return;
    text += formatted("  %6.2f %%  ", 100.0 * static_cast<double>(count) /
                                          static_cast<double>(result.classes.size())) +
            name + "\n";
  };
  for (std::size_t c = 0; c < result.class_count; ++c) {
    line(pixels[c], is_rest_of_mask(task, c) ? "(nothing)" : name_of(c, segment_label(task, c)));
  }
  line(pixels[SegmentationResult::kUnseen], "(cropped, not seen)");
  return text;
}

std::string landmarks_text(const Task& task, const LandmarksResult& result) {
  std::string text = counted(result.points.size(), "landmark");
  if (result.confidence) text += formatted(", score %.4f", *result.confidence);
  text += result.present ? "\n" : ": nothing is there\n";
  if (!result.present) return text;
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    if (i == kPointsShown && result.points.size() > kPointsShown + 1) {
      return text + "  … and " + std::to_string(result.points.size() - i) + " more\n";
    }
    const Landmark& point = result.points[i];
    text += formatted("  %3zu  (%.1f, %.1f)", i, point.x, point.y);
    if (i < task.labels.size()) text += "  " + task.labels[i];
    text += "\n";
  }
  return text;
}

std::string classification_text(const ClassificationResult& result) {
  std::string text = "Top-" + std::to_string(result.classes.size()) + " Predictions:\n";
  for (std::size_t i = 0; i < result.classes.size(); ++i) {
    const ClassificationResult::Class& found = result.classes[i];
    text += formatted("  %zu) id=%zu  p=%g  ", i + 1, found.index, found.probability) +
            found.label + "\n";
  }
  return text;
}

std::string map_text(const MapTask& task, const MapResult& result) {
  const MapStatistics found = map_statistics(result, {kMapShares.begin(), kMapShares.end()});
  const std::string unit = task.unit.empty() ? "" : " " + task.unit;
  std::string text = formatted("Map of %dx%d pixels, ", result.width, result.height) +
                     std::string(map_quantity_name(task.quantity)) + "\n";
  const auto line = [&](const char* name, double value) {
    text += formatted("  %-6s  %.6g", name, value) + unit + "\n";
  };
  if (found.seen > 0) {
    line("min", found.least);
    for (std::size_t i = 0; i < kMapShares.size(); ++i) {
      line(formatted("%g %%", 100 * kMapShares[i]).c_str(), found.quantiles[i]);
    }
    line("max", found.most);
    line("mean", found.mean);
  }
  if (found.seen < result.values.size()) {
    text += formatted("  %.2f %% of the pixels were cropped, and are not seen\n",
                      100.0 * static_cast<double>(result.values.size() - found.seen) /
                          static_cast<double>(result.values.size()));
  }
  return text;
}

std::string image_text(const ImageResult& result) {
  std::string text = formatted("Image of %dx%d pixels, made of numbers from %.6g to %.6g",
                               result.width, result.height, result.least, result.most);
  if (result.cut_off > 0) {
    text += formatted(", of which %.2f %% are beyond the range and cut off", 100 * result.cut_off);
  }
  return text + "\n";
}

std::string region_text(const SeenRegion& seen) {
  const PictureRegion& region = seen.region;
  std::string text = formatted("Region at %.1f,%.1f of %.1fx%.1f", region.x, region.y, region.width,
                               region.height);
  if (region.angle != 0) text += formatted(", turned by %.1f degrees", region.angle);
  if (seen.detection) {
    text += ": " + name_of(seen.detection->class_index, seen.detection->label) +
            formatted(" %.2f", seen.detection->score);
  }
  return text + "\n";
}

std::string text_of(const PictureReport& report, const Task& task, const TaskResult& result) {
  if (const auto* found = std::get_if<DetectionResult>(&result)) return detections_text(*found);
  if (const auto* found = std::get_if<SegmentationResult>(&result)) {
    return segmentation_text(task, *found);
  }
  if (const auto* found = std::get_if<LandmarksResult>(&result)) {
    return landmarks_text(task, *found);
  }
  if (const auto* found = std::get_if<ClassificationResult>(&result)) {
    return classification_text(*found);
  }
  if (const auto* found = std::get_if<MapResult>(&result)) {
    return map_text(std::get<MapTask>(task.what), *found);
  }
  if (const auto* found = std::get_if<ImageResult>(&result)) return image_text(*found);
  std::string text =
      "Embedding of " + counted(std::get<EmbeddingResult>(result).values.size(), "number") + "\n";
  if (report.cosine) text += formatted("Cosine similarity: %.6f\n", *report.cosine);
  return text;
}

std::string summary_of(const PictureReport& report, const TaskResult& result) {
  if (const auto* found = std::get_if<DetectionResult>(&result)) {
    std::string count = counted(found->detections.size(), "detection");
    if (found->detections.empty()) return count;
    return count + ": " + comma_list(found->detections, [](const Detection& detection) {
             return name_of(detection.class_index, detection.label) +
                    formatted(" %.2f", detection.score);
           });
  }
  if (const auto* found = std::get_if<SegmentationResult>(&result)) {
    return formatted("segmentation of %dx%d", found->width, found->height);
  }
  if (const auto* found = std::get_if<LandmarksResult>(&result)) {
    return found->present ? counted(found->points.size(), "landmark") : "no landmarks";
  }
  if (const auto* found = std::get_if<ClassificationResult>(&result)) {
    if (found->classes.empty()) return "no class";
    const ClassificationResult::Class& best = found->classes.front();
    return name_of(best.index, best.label) + formatted(" %.2f", best.probability);
  }
  if (const auto* found = std::get_if<MapResult>(&result)) {
    const MapStatistics numbers = map_statistics(*found, {});
    return formatted("map from %.6g to %.6g", numbers.least, numbers.most);
  }
  if (const auto* found = std::get_if<ImageResult>(&result)) {
    return formatted("image of %dx%d", found->width, found->height);
  }
  return report.cosine ? formatted("cosine %.4f", *report.cosine) : std::string("embedding");
}

}  // namespace

std::string results_text(const PictureReport& report) {
  std::string text;
  if (report.in_regions && report.regions.empty()) text = "The detector has found nothing\n";
  for (std::size_t i = 0; i < report.results.size(); ++i) {
    if (!report.regions.empty() && i % (report.results.size() / report.regions.size()) == 0) {
      text += region_text(report.regions[i / (report.results.size() / report.regions.size())]);
    }
    text += text_of(report, report.tasks[i], report.results[i]);
  }
  return text;
}

std::string map_file_text(const SavedMap& map) {
  std::string text = "Map: " + map.path.string();
  if (map.coding) {
    text += formatted(" (0: not seen, else %.9g + %.9g times the stored number)",
                      map.coding->offset, map.coding->step);
  }
  return text + "\n";
}

std::string results_summary(const PictureReport& report) {
  if (!report.top.empty()) {
    return name_of(report.top.front().index, report.top.front().label) +
           formatted(" %.2f", report.top.front().probability);
  }
  std::string text;
  if (report.in_regions && report.regions.empty()) text = "the detector has found nothing";
  for (const TaskResult& result : report.results) {
    text += (text.empty() ? "" : "; ") + summary_of(report, result);
  }
  return text;
}

}  // namespace run_model
