// The results of torchvision and of NumPy on the same tensors (make_golden.py).
#include <run_model/postprocess.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/postprocess/golden.h"

namespace run_model {
namespace {

using nlohmann::json;

bool same(const Detection& found, const json& expected, const PreprocessReport& picture) {
  constexpr double kPixels = 0.01, kScore = 1e-5;
  const auto box = expected.at("box").get<std::vector<double>>();
  const double sides[] = {found.box.left, found.box.top, found.box.right, found.box.bottom};
  for (std::size_t i = 0; i < 4; ++i) {
    if (std::abs(sides[i] - box[i]) > kPixels) return false;
  }
  const auto points = expected.value("keypoints", std::vector<double>());
  if (points.size() != 2 * found.keypoints.size()) return false;
  for (std::size_t i = 0; i < found.keypoints.size(); ++i) {
    if (std::abs(found.keypoints[i].x - points[2 * i]) > kPixels ||
        std::abs(found.keypoints[i].y - points[2 * i + 1]) > kPixels) {
      return false;
    }
  }
  const auto corners = expected.value("corners", std::vector<double>());
  if (found.corners.has_value() == corners.empty()) return false;
  for (std::size_t i = 0; i < corners.size(); ++i) {
    if (std::abs((*found.corners)[i / 2][i % 2] - corners[i]) > kPixels) return false;
  }
  if (found.mask.has_value() != expected.contains("mask")) return false;
  if (found.mask && coco_run_lengths(*found.mask, picture.original_width,
                                     picture.original_height) != expected.at("mask")) {
    return false;
  }
  return found.class_index == expected.at("class").get<std::size_t>() &&
         std::abs(found.score - expected.at("score").get<double>()) <= kScore;
}

void compare_detections(const DetectionResult& result, const json& expected,
                        const PreprocessReport& picture) {
  ASSERT_EQ(result.detections.size(), expected.size());
  for (std::size_t i = 1; i < result.detections.size(); ++i) {
    EXPECT_GE(result.detections[i - 1].score, result.detections[i].score);
  }
  // Others may put equal scores into another order.
  for (const json& item : expected) {
    EXPECT_TRUE(std::any_of(result.detections.begin(), result.detections.end(),
                            [&](const Detection& found) { return same(found, item, picture); }))
        << item;
  }
}

void compare_masks(const SegmentationResult& result, const json& expected) {
  const std::vector<std::string> found = coco_run_lengths(result);
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [index, lengths] : expected.items()) {
    EXPECT_EQ(found[std::stoul(index)], lengths.get<std::string>()) << "class " << index;
  }
}

void compare_points(const LandmarksResult& result, const json& expected) {
  ASSERT_EQ(result.points.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(result.points[i].x, expected[i][0].get<double>(), 1e-3) << "point " << i;
    EXPECT_NEAR(result.points[i].y, expected[i][1].get<double>(), 1e-3) << "point " << i;
    EXPECT_NEAR(result.points[i].score.value(), expected[i][2].get<double>(), 1e-6);
  }
}

void compare_maps(const MapResult& result, const json& expected) {
  const json& values = expected.at("values");
  ASSERT_EQ(result.values.size(), values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(std::isnan(result.values[i]), values[i].is_null()) << "pixel " << i;
    if (!values[i].is_null()) {
      ASSERT_NEAR(result.values[i], values[i].get<double>(), 1e-4) << "pixel " << i;
    }
  }
  const MapStatistics found = map_statistics(result, {0.05, 0.25, 0.5, 0.75, 0.95});
  for (std::size_t i = 0; i < found.quantiles.size(); ++i) {
    EXPECT_NEAR(found.quantiles[i], expected.at("quantiles")[i].get<double>(), 1e-4);
  }
  EXPECT_NEAR(found.least, expected.at("least").get<double>(), 1e-4);
  EXPECT_NEAR(found.most, expected.at("most").get<double>(), 1e-4);
  EXPECT_NEAR(found.mean, expected.at("mean").get<double>(), 1e-4);
}

void compare_images(const ImageResult& result, const json& expected) {
  ASSERT_EQ(result.width, expected.at("width").get<int>());
  ASSERT_EQ(result.height, expected.at("height").get<int>());
  const auto pixels = expected.at("pixels").get<std::vector<int>>();
  ASSERT_EQ(result.pixels.size(), pixels.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    ASSERT_NEAR(result.pixels[i], pixels[i], 1) << "byte " << i;
    if (result.pixels[i] != pixels[i]) ++different;
  }
  // The reference computes halves in double precision.
  EXPECT_LE(different, pixels.size() / 100);
  EXPECT_NEAR(result.least, expected.at("least").get<double>(), 1e-5);
  EXPECT_NEAR(result.most, expected.at("most").get<double>(), 1e-5);
}

TEST(PostprocessGoldenTest, ResultsAreThoseOfOthers) {
  ASSERT_GT(golden().size(), 10U);
  for (const json& item : golden()) {
    SCOPED_TRACE(item.at("name").get<std::string>());
    const Task task = parse_tasks(item.at("task").dump(), "golden.json").at(0);
    const std::vector<NetworkOutput> outputs = outputs_of(item.at("outputs"));
    const PreprocessReport picture = picture_of(item.at("picture"));
    const TaskResult result = postprocess(task, outputs, picture);
    if (const auto* detections = std::get_if<DetectionResult>(&result)) {
      compare_detections(*detections, item.at("expected"), picture);
    } else if (const auto* landmarks = std::get_if<LandmarksResult>(&result)) {
      compare_points(*landmarks, item.at("expected"));
    } else if (const auto* map = std::get_if<MapResult>(&result)) {
      compare_maps(*map, item.at("expected"));
    } else if (const auto* image = std::get_if<ImageResult>(&result)) {
      compare_images(*image, item.at("expected"));
    } else {
      compare_masks(std::get<SegmentationResult>(result), item.at("expected"));
    }
  }
}

}  // namespace
}  // namespace run_model
