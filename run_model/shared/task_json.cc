#include "run_model/shared/task_json.h"

#include <algorithm>
#include <string>
#include <utility>

namespace run_model {
namespace {

void add_detections(const DetectionResult& result, const PreprocessReport& picture, Json& json) {
  Json list = Json::array();
  for (const Detection& detection : result.detections) {
    const Box& box = detection.box;
    Json item = Json::object();
    item.put("box", Json::array({box.left, box.top, box.right, box.bottom}));
    item.put("class", detection.class_index);
    item.put("label", text_or_null(detection.label));
    item.put("score", detection.score);
    if (detection.corners) {
      const Corners& corners = *detection.corners;
      Json list_of_corners = Json::array();
      for (const auto& [x, y] : corners) list_of_corners.add(Json::array({x, y}));
      item.put("corners", std::move(list_of_corners));
      item.put("angle", side_angle(corners));
    }
    if (!detection.keypoints.empty()) {
      Json points = Json::array();
      for (const Keypoint& point : detection.keypoints) {
        Json numbers = Json::array({point.x, point.y});
        if (point.score) numbers.add(*point.score);
        points.add(std::move(numbers));
      }
      item.put("keypoints", std::move(points));
    }
    if (detection.mask) {
      const std::vector<std::uint8_t>& pixels = detection.mask->pixels;
      item.put("mask", Json::object({{"pixels", std::count(pixels.begin(), pixels.end(), 1)},
                                     {"rle", instance_mask_json(*detection.mask, picture)}}));
    }
    list.add(std::move(item));
  }
  json.put("detections", std::move(list));
}

void add_segmentation(const Task& task, const SegmentationResult& result, Json& json) {
  std::vector<std::size_t> pixels(256, 0);
  for (const std::uint8_t found : result.classes) ++pixels[found];
  const std::vector<std::string> lengths = coco_run_lengths(result);
  Json classes = Json::array();
  for (std::size_t c = 0; c < lengths.size(); ++c) {
    if (lengths[c].empty()) continue;
    Json run_lengths = Json::object(
        {{"size", Json::array({result.height, result.width})}, {"counts", lengths[c]}});
    classes.add(Json::object({{"class", c},
                              {"label", text_or_null(segment_label(task, c))},
                              {"pixels", pixels[c]},
                              {"rle", std::move(run_lengths)}}));
  }
  json.put("width", result.width);
  json.put("height", result.height);
  json.put("unseen", pixels[SegmentationResult::kUnseen]);
  json.put("classes", std::move(classes));
}

void add_landmarks(const LandmarksResult& result, Json& json) {
  Json points = Json::array();
  for (const Landmark& point : result.points) {
    Json numbers = Json::array({point.x, point.y});
    if (point.z) numbers.add(*point.z);
    points.add(std::move(numbers));
  }
  json.put("present", result.present);
  json.put("score", result.confidence);
  json.put("points", std::move(points));
  Json scores = Json::object();
  const auto put_scores = [&](const char* name, std::optional<double> Landmark::* member) {
    if (result.points.empty() || !(result.points.front().*member)) return;
    Json list = Json::array();
    for (const Landmark& point : result.points) list.add(point.*member);
    scores.put(name, std::move(list));
  };
  put_scores("score", &Landmark::score);
  put_scores("visibility", &Landmark::visibility);
  put_scores("presence", &Landmark::presence);
  json.put("point_scores", std::move(scores));
}

void add_classes(const ClassificationResult& result, Json& json) {
  Json top = Json::array();
  for (const ClassificationResult::Class& found : result.classes) {
    top.add(Json::object({{"index", found.index},
                          {"label", text_or_null(found.label)},
                          {"probability", found.probability}}));
  }
  json.put("top", std::move(top));
}

void add_map(const MapTask& task, const MapResult& result, Json& json) {
  const MapStatistics found = map_statistics(result, {kMapShares.begin(), kMapShares.end()});
  json.put("quantity", map_quantity_name(task.quantity));
  json.put("unit", text_or_null(task.unit));
  json.put("width", result.width);
  json.put("height", result.height);
  json.put("unseen", result.values.size() - found.seen);
  const bool any = found.seen > 0;
  json.put("min", any ? Json(found.least) : Json());
  json.put("max", any ? Json(found.most) : Json());
  json.put("mean", any ? Json(found.mean) : Json());
  Json quantiles = Json::array();
  for (std::size_t i = 0; any && i < kMapShares.size(); ++i) {
    quantiles.add(Json::array({kMapShares[i], found.quantiles[i]}));
  }
  json.put("quantiles", std::move(quantiles));
}

void add_image(const ImageResult& result, Json& json) {
  json.put("width", result.width);
  json.put("height", result.height);
  json.put("unseen", std::count(result.seen.begin(), result.seen.end(), 0));
  json.put("min", result.least);
  json.put("max", result.most);
  json.put("cut_off", result.cut_off);
}

}  // namespace

std::string segment_label(const Task& task, std::size_t index) {
  const auto& segmentation = std::get<SegmentationTask>(task.what);
  // One label of a mask is the name of what it shows.
  if (segmentation.form == SegmentationForm::kMask && task.labels.size() == 1) {
    return index == 1 ? task.labels.front() : "";
  }
  return index < task.labels.size() ? task.labels[index] : "";
}

bool is_rest_of_mask(const Task& task, std::size_t index) {
  return index == 0 && std::get<SegmentationTask>(task.what).form == SegmentationForm::kMask &&
         segment_label(task, index).empty();
}

Json instance_mask_json(const InstanceMask& mask, const PreprocessReport& picture) {
  const int width = picture.original_width, height = picture.original_height;
  return Json::object(
      {{"size", Json::array({height, width})}, {"counts", coco_run_lengths(mask, width, height)}});
}

Json regions_json(std::span<const SeenRegion> regions) {
  Json list = Json::array();
  for (const SeenRegion& seen : regions) {
    const PictureRegion& region = seen.region;
    Json item = Json::object({{"x", region.x},
                              {"y", region.y},
                              {"width", region.width},
                              {"height", region.height},
                              {"angle", region.angle}});
    if (seen.detection) {
      item.put("class", seen.detection->class_index);
      item.put("label", text_or_null(seen.detection->label));
      item.put("score", seen.detection->score);
    }
    list.add(std::move(item));
  }
  return list;
}

void put_result(const Task& task, const TaskResult& result, const PreprocessReport& picture,
                Json& json) {
  json.put("kind", task_kind_name(task.kind()));
  if (const auto* detections = std::get_if<DetectionResult>(&result)) {
    add_detections(*detections, picture, json);
  } else if (const auto* segmentation = std::get_if<SegmentationResult>(&result)) {
    add_segmentation(task, *segmentation, json);
  } else if (const auto* landmarks = std::get_if<LandmarksResult>(&result)) {
    add_landmarks(*landmarks, json);
  } else if (const auto* classes = std::get_if<ClassificationResult>(&result)) {
    add_classes(*classes, json);
  } else if (const auto* map = std::get_if<MapResult>(&result)) {
    add_map(std::get<MapTask>(task.what), *map, json);
  } else if (const auto* image = std::get_if<ImageResult>(&result)) {
    add_image(*image, json);
  } else {
    json.put("values", std::get<EmbeddingResult>(result).values);
  }
}

}  // namespace run_model
