#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "base/text.h"
#include "run_model/run_model/results.h"

namespace run_model {
namespace {

// COCO's own pictures are called by their numbers: 000000000139.jpg.
std::optional<std::int64_t> number_of(const std::string& file_name) {
  const auto number = whole_number<std::int64_t>(std::filesystem::path(file_name).stem().string());
  return number && *number >= 0 ? number : std::nullopt;
}

// By the corners of a quadrangle.
double area_of(const Corners& corners) {
  double twice = 0.0;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    const auto &a = corners[i], &b = corners[(i + 1) % corners.size()];
    twice += a[0] * b[1] - a[1] * b[0];
  }
  return std::abs(twice) / 2;
}

double area_of(const Detection& found) {
  if (found.corners) return area_of(*found.corners);
  if (!found.mask) {
    return (found.box.right - found.box.left) * (found.box.bottom - found.box.top);
  }
  const std::vector<std::uint8_t>& pixels = found.mask->pixels;
  return static_cast<double>(std::count(pixels.begin(), pixels.end(), 1));
}

Json detection_annotation(const Detection& found, const PreprocessReport& picture) {
  const double width = found.box.right - found.box.left;
  const double height = found.box.bottom - found.box.top;
  Json json = Json::object({{"category_id", found.class_index},
                            {"bbox", Json::array({found.box.left, found.box.top, width, height})},
                            {"area", area_of(found)},
                            {"score", found.score},
                            {"iscrowd", 0}});
  if (!found.keypoints.empty()) {
    Json points = Json::array();
    for (const Keypoint& point : found.keypoints) {
      points.add(point.x);
      points.add(point.y);
      // COCO's visibility: 2 is labelled and visible. Evaluations do not look at it in results.
      points.add(2);
    }
    json.put("keypoints", std::move(points));
    json.put("num_keypoints", found.keypoints.size());
  }
  if (found.corners) {
    Json polygon = Json::array();
    for (const auto& [x, y] : *found.corners) {
      polygon.add(x);
      polygon.add(y);
    }
    Json polygons = Json::array();
    polygons.add(std::move(polygon));
    json.put("segmentation", std::move(polygons));
  }
  if (found.mask) json.put("segmentation", instance_mask_json(*found.mask, picture));
  return json;
}

}  // namespace

void CocoFile::add_category(std::size_t index, const std::string& label) {
  const auto at = std::lower_bound(
      categories_.begin(), categories_.end(), index,
      [](const auto& category, std::size_t number) { return category.first < number; });
  if (at != categories_.end() && at->first == index) return;
  categories_.insert(at, {index, label.empty() ? std::to_string(index) : label});
}

void CocoFile::add(const PictureReport& report) {
  Picture picture;
  picture.file_name = report.image.filename().string();
  picture.width = report.sides.original_width;
  picture.height = report.sides.original_height;
  for (std::size_t i = 0; i < report.results.size(); ++i) {
    const Task& task = report.tasks[i];
    const bool drawn =
        task.kind() == TaskKind::kDetection || task.kind() == TaskKind::kSegmentation;
    if (!drawn) continue;
    for (std::size_t c = 0; c < task.labels.size(); ++c) add_category(c, task.labels[c]);
    if (const auto* found = std::get_if<DetectionResult>(&report.results[i])) {
      for (const Detection& detection : found->detections) {
        add_category(detection.class_index, detection.label);
        picture.annotations.push_back(detection_annotation(detection, report.sides));
      }
    } else if (const auto* map = std::get_if<SegmentationResult>(&report.results[i])) {
      const std::vector<std::string> lengths = coco_run_lengths(*map);
      for (std::size_t c = 0; c < lengths.size(); ++c) {
        if (lengths[c].empty()) continue;
        add_category(c, segment_label(task, c));
        Json run_lengths = Json::object(
            {{"size", Json::array({map->height, map->width})}, {"counts", lengths[c]}});
        picture.annotations.push_back(
            Json::object({{"category_id", c},
                          {"segmentation", std::move(run_lengths)},
                          {"area", std::count(map->classes.begin(), map->classes.end(), c)},
                          {"score", 1.0},
                          {"iscrowd", 0}}));
      }
    }
  }
  pictures_.push_back(std::move(picture));
}

std::string CocoFile::text() const {
  std::map<std::int64_t, int> numbers;
  bool named_by_numbers = true;
  for (const Picture& picture : pictures_) {
    const std::optional<std::int64_t> number = number_of(picture.file_name);
    named_by_numbers = named_by_numbers && number && ++numbers[*number] == 1;
  }
  Json images = Json::array(), annotations = Json::array(), categories = Json::array();
  std::int64_t annotation_id = 0;
  for (std::size_t i = 0; i < pictures_.size(); ++i) {
    const Picture& picture = pictures_[i];
    const std::int64_t id =
        named_by_numbers ? *number_of(picture.file_name) : static_cast<std::int64_t>(i) + 1;
    images.add(Json::object({{"id", id},
                             {"file_name", picture.file_name},
                             {"width", picture.width},
                             {"height", picture.height}}));
    for (Json annotation : picture.annotations) {
      annotation.put("id", ++annotation_id);
      annotation.put("image_id", id);
      annotations.add(std::move(annotation));
    }
  }
  for (const auto& [index, label] : categories_) {
    categories.add(Json::object({{"id", index}, {"name", label}}));
  }
  return Json::object({{"images", std::move(images)},
                       {"annotations", std::move(annotations)},
                       {"categories", std::move(categories)}})
             .compact() +
         "\n";
}

}  // namespace run_model
