#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>

#include <run_model/error.h>
#include <run_model/postprocess.h>

namespace run_model {
namespace {

constexpr double kDegrees = 180.0 / std::numbers::pi;

const Keypoint& keypoint(const Detection& detection, std::size_t index) {
  if (index >= detection.keypoints.size()) {
    throw Error(ErrorKind::kMismatch,
                "the rule for regions names keypoint " + std::to_string(index) +
                    ", but the detector gives " + std::to_string(detection.keypoints.size()),
                "use the detector that the rule is for, or correct \"region\" of the task");
  }
  return detection.keypoints[index];
}

Box around_keypoints(const Detection& detection) {
  keypoint(detection, 0);
  constexpr double kFar = std::numeric_limits<double>::infinity();
  Box box{kFar, kFar, -kFar, -kFar};
  for (const Keypoint& point : detection.keypoints) {
    box = {std::min(box.left, point.x), std::min(box.top, point.y), std::max(box.right, point.x),
           std::max(box.bottom, point.y)};
  }
  return box;
}

Box about_alignment(const Detection& detection, const RegionRule::Turn& turn) {
  const Keypoint& centre = keypoint(detection, turn.start);
  const Keypoint& end = keypoint(detection, turn.end);
  const double reach = std::hypot(end.x - centre.x, end.y - centre.y);
  return {centre.x - reach, centre.y - reach, centre.x + reach, centre.y + reach};
}

const Corners& corners_of(const Detection& detection) {
  if (!detection.corners) {
    throw Error(ErrorKind::kMismatch,
                "the rule for regions is \"from\" oriented, but the detector's boxes are upright",
                "use a detector whose boxes have an angle, or correct \"region\" of the task");
  }
  return *detection.corners;
}

// An oriented box before it was turned about its middle.
Box unturned(const Detection& detection) {
  const Corners& corners = corners_of(detection);
  const double x = (corners[0][0] + corners[2][0]) / 2, y = (corners[0][1] + corners[2][1]) / 2;
  const double width = std::hypot(corners[1][0] - corners[0][0], corners[1][1] - corners[0][1]);
  const double height = std::hypot(corners[3][0] - corners[0][0], corners[3][1] - corners[0][1]);
  return {x - width / 2, y - height / 2, x + width / 2, y + height / 2};
}

Box base_of(const Detection& detection, const RegionRule& rule) {
  switch (rule.from) {
    case RegionRule::From::kBox:
      return detection.box;
    case RegionRule::From::kKeypoints:
      return around_keypoints(detection);
    case RegionRule::From::kAlignment:
      return about_alignment(detection, rule.turn.value_or(RegionRule::Turn{}));
    case RegionRule::From::kOriented:
      return unturned(detection);
  }
  return detection.box;
}

}  // namespace

PictureRegion region_of(const Detection& detection, const RegionRule& rule) {
  const Box box = base_of(detection, rule);
  double width = box.right - box.left, height = box.bottom - box.top;
  double x = box.left + width / 2, y = box.top + height / 2;
  double angle = 0.0;
  if (rule.turn) {
    const Keypoint& start = keypoint(detection, rule.turn->start);
    const Keypoint& end = keypoint(detection, rule.turn->end);
    angle = rule.turn->target - std::atan2(-(end.y - start.y), end.x - start.x) * kDegrees;
    angle -= 360.0 * std::floor((angle + 180.0) / 360.0);
  }
  if (rule.from == RegionRule::From::kOriented) angle = side_angle(corners_of(detection));
  const double c = std::cos(angle / kDegrees), s = std::sin(angle / kDegrees);
  x += width * rule.shift_x * c - height * rule.shift_y * s;
  y += width * rule.shift_x * s + height * rule.shift_y * c;
  if (rule.square != RegionRule::Square::kNone) {
    const bool longer = rule.square == RegionRule::Square::kLong;
    width = height = longer ? std::max(width, height) : std::min(width, height);
  }
  width *= rule.scale_x;
  height *= rule.scale_y;
  return {x - width / 2, y - height / 2, width, height, angle};
}

std::vector<SeenRegion> regions_of(std::span<const TaskResult> found, std::span<const Task> tasks,
                                   int width, int height) {
  const auto ruled = std::find_if(tasks.begin(), tasks.end(),
                                  [](const Task& task) { return task.region.has_value(); });
  const RegionRule rule = ruled == tasks.end() ? RegionRule() : *ruled->region;
  std::vector<SeenRegion> regions;
  for (const TaskResult& result : found) {
    const auto* detections = std::get_if<DetectionResult>(&result);
    if (detections == nullptr) continue;
    for (const Detection& detection : detections->detections) {
      const PictureRegion region = region_of(detection, rule);
      if (can_be_seen(region, width, height)) regions.push_back({region, detection});
    }
  }
  return regions;
}

}  // namespace run_model
