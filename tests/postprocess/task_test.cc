#include <run_model/task.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "tests/has_elements.h"

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json face_detection() {
  return json::parse(R"({"kind": "detection", "form": "ssd", "boxes": "regressors",
    "scores": "classificators", "x_scale": 128, "y_scale": 128, "w_scale": 128, "h_scale": 128,
    "box_format": "cxcywh", "exponential": false, "activation": "sigmoid", "score_clip": 100,
    "score_threshold": 0.5, "nms": {"iou": 0.3, "mode": "weighted", "per_class": false},
    "keypoints": {"count": 6}, "labels": ["face"],
    "anchors": {"generator": "mediapipe", "input_width": 128, "input_height": 128,
      "num_layers": 4, "min_scale": 0.1484375, "max_scale": 0.75, "strides": [8, 16, 16, 16],
      "aspect_ratios": [1.0], "fixed_anchor_size": true}})");
}

json yolo_heads() {
  return json::parse(R"({"kind": "detection", "form": "yolo-heads", "outputs": [0, "small"],
    "anchors": [[[10, 14], [23, 27]], [[81, 82]]], "coding": "v5", "layout": "NCHW",
    "score_threshold": 0.25, "nms": null})");
}

json rows() {
  return json::parse(R"({"kind": "detection", "form": "yolo-rows", "output": 0, "units": "pixels",
    "strides": [8, 16], "score_threshold": 0.25, "nms": null})");
}

json mask() {
  return json::parse(R"({"kind": "segmentation", "output": 0, "form": "mask",
    "activation": "sigmoid"})");
}

json pose() {
  return json::parse(R"({"kind": "landmarks", "output": "ld_3d", "points": 33, "units": "pixels",
    "columns": ["x", "y", "z", "visibility", "presence"], "point_activation": "sigmoid",
    "confidence": "flag", "confidence_activation": "none", "connections": [[0, 1], [1, 2]]})");
}

std::vector<Task> parse(const json& document) { return parse_tasks(document.dump(), "t.json"); }

std::string refusal_of_text(const std::string& text) {
  try {
    parse_tasks(text, "t.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kFormat);
    EXPECT_THAT(error.what(), HasSubstr("t.json"));
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text;
  return "";
}

std::string refusal(const json& document) { return refusal_of_text(document.dump()); }

TEST(TaskTest, SaysWhereABrokenListOfTasksIsBroken) {
  EXPECT_THAT(refusal_of_text(R"([{"kind": )"), HasSubstr("no valid JSON from byte 11 on"));
  EXPECT_THAT(refusal_of_text("kind: landmarks"), HasSubstr("does not start with '{' or '['"));
}

TEST(TaskTest, ReadsADetectionByAnchors) {
  const Task task = parse(face_detection()).at(0);
  EXPECT_EQ(task.kind(), TaskKind::kDetection);
  EXPECT_TRUE(has_elements(task.labels, {"face"}));
  const auto& detection = std::get<DetectionTask>(task.what);
  EXPECT_EQ(detection.keypoints, 6U);
  EXPECT_EQ(detection.limit, 100U);
  ASSERT_TRUE(detection.suppression);
  EXPECT_EQ(detection.suppression->mode, SuppressionMode::kWeighted);
  const auto& ssd = std::get<SsdForm>(detection.form);
  EXPECT_EQ(ssd.boxes.name, "regressors");
  EXPECT_EQ(ssd.keypoint_offset, 4U);
  const auto& anchors = std::get<MediapipeAnchors>(ssd.anchors);
  EXPECT_TRUE(has_elements(anchors.strides, {8, 16, 16, 16}));
  EXPECT_EQ(anchors.interpolated_scale_aspect_ratio, 1.0);
}

TEST(TaskTest, ReadsOtherKinds) {
  const auto heads = std::get<DetectionTask>(parse(yolo_heads()).at(0).what);
  EXPECT_EQ(std::get<YoloHeadsForm>(heads.form).coding, YoloCoding::kV5);
  EXPECT_EQ(heads.activation, Activation::kSigmoid);
  EXPECT_FALSE(heads.suppression);
  const auto segmentation = std::get<SegmentationTask>(parse(mask()).at(0).what);
  EXPECT_EQ(segmentation.form, SegmentationForm::kMask);
  EXPECT_TRUE(segmentation.bilinear);
  const auto landmarks = std::get<LandmarksTask>(parse(pose()).at(0).what);
  EXPECT_EQ(landmarks.points, 33U);
  EXPECT_EQ(landmarks.columns.size(), 5U);
  EXPECT_EQ(landmarks.connections.size(), 2U);
}

TEST(TaskTest, ReadsOneTaskListsAndObjectsWithTasks) {
  const json list = json::array({mask(), pose()});
  EXPECT_EQ(parse(mask()).size(), 1U);
  EXPECT_EQ(parse(list).size(), 2U);
  EXPECT_EQ(parse(json{{"tasks", list}, {"schema_version", 1}}).size(), 2U);
  EXPECT_EQ(parse(json{{"tasks", pose()}}).size(), 1U);
  EXPECT_THAT(refusal(json::array()), HasSubstr("has 0 tasks"));
}

// Each member of each example is needed, or has a default that the reader documents.
TEST(TaskTest, RefusesWhatIsMissing) {
  const auto needed = [](const json& document, const std::vector<std::string>& optional) {
    for (const auto& [key, value] : document.items()) {
      json without = document;
      without.erase(key);
      if (std::find(optional.begin(), optional.end(), key) != optional.end()) {
        EXPECT_NO_THROW(parse(without)) << key;
      } else {
        EXPECT_THAT(refusal(without), HasSubstr(key));
      }
    }
  };
  needed(face_detection(), {"score_clip", "keypoints", "labels"});
  needed(yolo_heads(), {});
  needed(mask(), {});
  needed(pose(), {"points", "point_activation", "connections"});
}

TEST(TaskTest, RefusesWhatIsUnknown) {
  for (const json& example : {face_detection(), yolo_heads(), mask(), pose()}) {
    json document = example;
    document["treshold"] = 0.5;
    EXPECT_THAT(refusal(document), HasSubstr("treshold is not a field"));
  }
  json document = face_detection();
  document["anchors"]["stride"] = 8;
  EXPECT_THAT(refusal(document), HasSubstr("anchors.stride is not a field"));
  document = face_detection();
  document["nms"]["threshold"] = 0.3;
  EXPECT_THAT(refusal(document), HasSubstr("nms.threshold is not a field"));
}

TEST(TaskTest, RefusesWhatMakesNoSense) {
  const auto with = [](json document, const char* path, const json& value) {
    document[json::json_pointer(path)] = value;
    return refusal(document);
  };
  EXPECT_THAT(with(face_detection(), "/kind", "detecton"),
              HasSubstr("'detecton', expected one of"));
  EXPECT_THAT(with(face_detection(), "/score_threshold", 1.5), HasSubstr("is not from 0 to 1"));
  EXPECT_THAT(with(face_detection(), "/w_scale", 0), HasSubstr("is not more than 0"));
  EXPECT_THAT(with(face_detection(), "/boxes", ""), HasSubstr("is empty"));
  EXPECT_THAT(with(face_detection(), "/limit", 0), HasSubstr("expected 1 or more"));
  EXPECT_THAT(with(face_detection(), "/anchors/num_layers", 3), HasSubstr("number of strides"));
  EXPECT_THAT(with(face_detection(), "/labels/0", "a\x1b[2J"), HasSubstr("is no label"));
  EXPECT_THAT(with(yolo_heads(), "/anchors", json::array()), HasSubstr("not one list for each"));
  EXPECT_THAT(with(yolo_heads(), "/scale_xy", 1.1), HasSubstr("coding v3 only"));
  const json masks = json::parse(R"({"output": 1, "count": 4, "layout": "NCHW"})");
  EXPECT_THAT(with(yolo_heads(), "/masks", masks),
              HasSubstr("yolo-rows, yolo-v8, boxes and box-rows"));
  EXPECT_THAT(with(rows(), "/masks", json::parse(R"({"output": 1, "layout": "NCHW"})")),
              HasSubstr("count"));
  EXPECT_THAT(with(rows(), "/strides", json::array()), HasSubstr("is empty"));
  EXPECT_THAT(with(rows(), "/units", "normalized"), HasSubstr("is not 'pixels'"));
  EXPECT_THAT(with(mask(), "/layout", "NCHW"), HasSubstr("form scores only"));
  EXPECT_THAT(with(mask(), "/activation", "softmax"), HasSubstr("expected one of none, sigmoid"));
  EXPECT_THAT(with(pose(), "/columns/2", "x"), HasSubstr("does not have 'x' once"));
  EXPECT_THAT(with(pose(), "/columns/2", "visibility"), HasSubstr("more than once"));
}

TEST(TaskTest, SetsThresholds) {
  Task task = parse(face_detection()).at(0);
  set_score_threshold(task, 0.75);
  EXPECT_EQ(std::get<DetectionTask>(task.what).score_threshold, 0.75);
}

}  // namespace
}  // namespace run_model
