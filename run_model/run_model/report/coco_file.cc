#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "run_model/run_model/report/results.h"

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

// Keypoints or landmarks.
template <typename Point>
void put_points(const std::vector<Point>& points, Json& json) {
  Json numbers = Json::array();
  for (const Point& point : points) {
    numbers.add(point.x);
    numbers.add(point.y);
    // COCO's visibility: 2 is labelled and visible. Evaluations do not look at it in results.
    numbers.add(2);
  }
  json.put("keypoints", std::move(numbers));
  json.put("num_keypoints", points.size());
}

// The box is the one around the points.
Json points_annotation(const LandmarksResult& found) {
  const auto [left, right] =
      std::minmax_element(found.points.begin(), found.points.end(),
                          [](const Landmark& a, const Landmark& b) { return a.x < b.x; });
  const auto [top, bottom] =
      std::minmax_element(found.points.begin(), found.points.end(),
                          [](const Landmark& a, const Landmark& b) { return a.y < b.y; });
  const double width = right->x - left->x, height = bottom->y - top->y;
  Json json = Json::object({{"bbox", Json::array({left->x, top->y, width, height})},
                            {"area", width * height},
                            {"score", found.confidence.value_or(1.0)},
                            {"iscrowd", 0}});
  put_points(found.points, json);
  return json;
}

Json class_category(std::size_t index, const std::string& label) {
  return Json::object({{"name", label.empty() ? std::to_string(index) : label}});
}

// COCO counts a skeleton's points from 1.
Json landmarks_category(const Task& task) {
  Json names = Json::array(), lines = Json::array();
  for (const std::string& label : task.labels) names.add(label);
  for (const auto& [from, to] : std::get<LandmarksTask>(task.what).connections) {
    lines.add(Json::array({from + 1, to + 1}));
  }
  Json json = Json::object({{"name", "landmarks"}});
  if (!task.labels.empty()) json.put("keypoints", std::move(names));
  json.put("skeleton", std::move(lines));
  return json;
}

// The pixels of a class, and the box around them.
struct Area {
  int left = std::numeric_limits<int>::max(), top = left, right = 0, bottom = 0;
  std::int64_t pixels = 0;
};

std::vector<Area> areas_of(const SegmentationResult& map) {
  std::vector<Area> areas(SegmentationResult::kUnseen + 1);
  auto pixel = map.classes.begin();
  for (int y = 0; y < map.height; ++y) {
    for (int x = 0; x < map.width; ++x) {
      Area& area = areas[*pixel++];
      area.left = std::min(area.left, x);
      area.top = std::min(area.top, y);
      area.right = std::max(area.right, x + 1);
      area.bottom = y + 1;
      ++area.pixels;
    }
  }
  return areas;
}

Json area_annotation(const SegmentationResult& map, const Area& area, const std::string& lengths) {
  Json run_lengths =
      Json::object({{"size", Json::array({map.height, map.width})}, {"counts", lengths}});
  return Json::object(
      {{"bbox", Json::array({area.left, area.top, area.right - area.left, area.bottom - area.top})},
       {"segmentation", std::move(run_lengths)},
       {"area", area.pixels},
       {"score", 1.0},
       {"iscrowd", 0}});
}

Json detection_annotation(const Detection& found, const PreprocessReport& picture) {
  const double width = found.box.right - found.box.left;
  const double height = found.box.bottom - found.box.top;
  Json json = Json::object({{"bbox", Json::array({found.box.left, found.box.top, width, height})},
                            {"area", area_of(found)},
                            {"score", found.score},
                            {"iscrowd", 0}});
  if (!found.keypoints.empty()) put_points(found.keypoints, json);
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

void CocoFile::add_category(std::size_t task, std::size_t index, const Json& category) {
  if (categories_.size() <= task) categories_.resize(task + 1);
  categories_[task].try_emplace(index, category);
}

void CocoFile::add_result(std::size_t number, const PictureReport& report, std::size_t index,
                          Picture& picture) {
  const Task& task = report.tasks[index];
  const TaskResult& result = report.results[index];
  if (const auto* points = std::get_if<LandmarksResult>(&result)) {
    add_category(number, 0, landmarks_category(task));
    if (points->present) picture.annotations.push_back({number, 0, points_annotation(*points)});
    return;
  }
  if (const auto* found = std::get_if<DetectionResult>(&result)) {
    for (std::size_t c = 0; c < task.labels.size(); ++c) {
      add_category(number, c, class_category(c, task.labels[c]));
    }
    for (const Detection& detection : found->detections) {
      add_category(number, detection.class_index,
                   class_category(detection.class_index, detection.label));
      picture.annotations.push_back(
          {number, detection.class_index, detection_annotation(detection, report.sides)});
    }
    return;
  }
  const auto* map = std::get_if<SegmentationResult>(&result);
  if (map == nullptr) return;
  const std::vector<std::string> lengths = coco_run_lengths(*map);
  const std::vector<Area> areas = areas_of(*map);
  for (std::size_t c = 0; c < lengths.size(); ++c) {
    if (is_rest_of_mask(task, c)) continue;
    const std::string label = segment_label(task, c);
    if (!label.empty() || !lengths[c].empty()) add_category(number, c, class_category(c, label));
    if (lengths[c].empty()) continue;
    picture.annotations.push_back({number, c, area_annotation(*map, areas[c], lengths[c])});
  }
}

void CocoFile::add(const PictureReport& report) {
  const bool fits = std::any_of(report.tasks.begin(), report.tasks.end(), [](const Task& task) {
    return task.kind() == TaskKind::kDetection || task.kind() == TaskKind::kSegmentation ||
           task.kind() == TaskKind::kLandmarks;
  });
  if (!fits && !report.tasks.empty()) {
    throw Error(ErrorKind::kUsage, "--coco is for models with boxes, masks or landmarks",
                "the tasks of this one have none");
  }
  Picture picture;
  picture.file_name = report.image.filename().string();
  picture.width = report.sides.original_width;
  picture.height = report.sides.original_height;
  // Of several regions, each has all tasks.
  const std::size_t tasks = report.tasks.size() / std::max<std::size_t>(1, report.regions.size());
  for (std::size_t i = 0; i < report.results.size(); ++i) add_result(i % tasks, report, i, picture);
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
  // A task's classes follow those of the tasks before it.
  std::vector<std::size_t> first_ids{0};
  for (const std::map<std::size_t, Json>& of_task : categories_) {
    const std::size_t first = first_ids.back();
    for (const auto& [index, category] : of_task) {
      Json json = category;
      json.put("id", first + index);
      categories.add(std::move(json));
    }
    first_ids.push_back(of_task.empty() ? first : first + of_task.rbegin()->first + 1);
  }
  std::int64_t annotation_id = 0;
  for (std::size_t i = 0; i < pictures_.size(); ++i) {
    const Picture& picture = pictures_[i];
    const std::int64_t id =
        named_by_numbers ? *number_of(picture.file_name) : static_cast<std::int64_t>(i) + 1;
    images.add(Json::object({{"id", id},
                             {"file_name", picture.file_name},
                             {"width", picture.width},
                             {"height", picture.height}}));
    for (const Annotation& annotation : picture.annotations) {
      Json json = annotation.json;
      json.put("category_id", first_ids[annotation.task] + annotation.class_index);
      json.put("id", ++annotation_id);
      json.put("image_id", id);
      annotations.add(std::move(json));
    }
  }
  return Json::object({{"images", std::move(images)},
                       {"annotations", std::move(annotations)},
                       {"categories", std::move(categories)}})
             .compact() +
         "\n";
}

}  // namespace run_model
