#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <run_model/error.h>
#include <run_model/postprocess.h>

namespace run_model {
namespace {

constexpr DLDataType kFloat{kDLFloat, 32, 1};

Tensor tensor_of(std::vector<std::int64_t> shape, const std::vector<float>& values) {
  Tensor tensor = Tensor::empty(shape, kFloat);
  std::copy(values.begin(), values.end(), tensor.elements<float>().begin());
  return tensor;
}

Task task_of(const char* text) { return parse_tasks(text, "t.json").front(); }

// A picture of 200 x 100 of which the network of 40 x 20 sees `region`, squashed.
PreprocessReport report_of(const PictureRegion& region) {
  PreprocessReport report;
  Preprocessing preprocessing;
  preprocessing.fit = Fit::kSquash;
  preprocess(Image(200, 100), preprocessing, std::vector<std::int64_t>{1, 3, 20, 40}, kFloat,
             Layout::kNchw, &report, &region);
  return report;
}

std::vector<NetworkOutput> outputs_of(const Tensor& tensor) { return {{"out", "", tensor}}; }

const char* const kPoints = R"({"kind": "landmarks", "output": "out", "columns": ["x", "y"],
  "units": "pixels"})";

TEST(RegionTest, PointsGoBackThroughARegion) {
  const auto points = outputs_of(tensor_of({1, 3, 2}, {0, 0, 40, 20, 20, 10}));
  const auto in = [&](const PictureRegion& region) {
    return std::get<LandmarksResult>(postprocess(task_of(kPoints), points, report_of(region)))
        .points;
  };
  const auto upright = in({20, 30, 80, 40});
  EXPECT_DOUBLE_EQ(upright[0].x, 20);
  EXPECT_DOUBLE_EQ(upright[0].y, 30);
  EXPECT_DOUBLE_EQ(upright[1].x, 100);
  EXPECT_DOUBLE_EQ(upright[1].y, 70);
  // Turned by a quarter clockwise about (60, 50): what was left top is right top.
  const auto turned = in({20, 30, 80, 40, 90});
  EXPECT_NEAR(turned[0].x, 80, 1e-9);
  EXPECT_NEAR(turned[0].y, 10, 1e-9);
  EXPECT_NEAR(turned[1].x, 40, 1e-9);
  EXPECT_NEAR(turned[1].y, 90, 1e-9);
  EXPECT_NEAR(turned[2].x, 60, 1e-9);
  EXPECT_NEAR(turned[2].y, 50, 1e-9);
}

TEST(RegionTest, BoxesOfATurnedRegionStayUpright) {
  const Task task = task_of(R"({"kind": "detection", "form": "box-rows", "output": "out",
    "box_format": "xyxy", "units": "pixels", "score_threshold": 0.5})");
  const auto rows = outputs_of(tensor_of({1, 1, 6}, {0, 0, 20, 10, 1, 0}));
  const auto found =
      std::get<DetectionResult>(postprocess(task, rows, report_of({20, 30, 80, 40, 90})))
          .detections.front();
  EXPECT_NEAR(found.box.left, 60, 1e-9);
  EXPECT_NEAR(found.box.top, 10, 1e-9);
  EXPECT_NEAR(found.box.right, 80, 1e-9);
  EXPECT_NEAR(found.box.bottom, 50, 1e-9);
}

TEST(RegionTest, MasksAreOfTheRegionOnly) {
  const Task task = task_of(R"({"kind": "segmentation", "output": "out", "form": "mask",
    "activation": "none", "resample": "nearest"})");
  // The left half of what is seen.
  const auto mask = outputs_of(tensor_of({1, 1, 1, 2}, {1, 0}));
  const auto at = [&](const SegmentationResult& found, int x, int y) {
    return int{found.classes[static_cast<std::size_t>(y * 200 + x)]};
  };
  const auto upright =
      std::get<SegmentationResult>(postprocess(task, mask, report_of({20, 30, 80, 40})));
  EXPECT_EQ(at(upright, 20, 30), 1);
  EXPECT_EQ(at(upright, 59, 69), 1);
  EXPECT_EQ(at(upright, 60, 50), 0);
  EXPECT_EQ(at(upright, 99, 69), 0);
  EXPECT_EQ(at(upright, 100, 50), 255);
  EXPECT_EQ(at(upright, 60, 70), 255);
  const auto turned =
      std::get<SegmentationResult>(postprocess(task, mask, report_of({20, 30, 80, 40, 90})));
  EXPECT_EQ(at(turned, 60, 12), 1);
  EXPECT_EQ(at(turned, 60, 49), 1);
  EXPECT_EQ(at(turned, 60, 51), 0);
  EXPECT_EQ(at(turned, 60, 88), 0);
  EXPECT_EQ(at(turned, 30, 50), 255);
  EXPECT_EQ(at(turned, 60, 5), 255);
}

Detection detection_of(const Box& box, const std::vector<std::array<double, 2>>& points) {
  Detection detection;
  detection.box = box;
  for (const auto& [x, y] : points) detection.keypoints.push_back({x, y, std::nullopt});
  return detection;
}

RegionRule rule_of(const std::string& members) {
  const std::string text = R"({"kind": "embedding", "output": 0, "region": {)" + members + "}}";
  return *parse_tasks(text, "t.json").front().region;
}

void expect_region(const PictureRegion& region, double centre_x, double centre_y, double width,
                   double height, double angle) {
  EXPECT_NEAR(region.x + region.width / 2, centre_x, 1e-9);
  EXPECT_NEAR(region.y + region.height / 2, centre_y, 1e-9);
  EXPECT_NEAR(region.width, width, 1e-9);
  EXPECT_NEAR(region.height, height, 1e-9);
  EXPECT_NEAR(region.angle, angle, 1e-9);
}

// Numbers worked out from DetectionsToRectsCalculator and RectTransformationCalculator.
TEST(RegionTest, RulesAreMediaPipes) {
  // Eyes on a line that falls to the right by 45 degrees.
  const Detection face = detection_of({10, 20, 50, 40}, {{20, 20}, {30, 30}});
  expect_region(region_of(face, rule_of("")), 30, 30, 40, 20, 0);
  expect_region(region_of(face, rule_of(R"("turn": {"start": 0, "end": 1, "target": 0},
                                           "square": "long", "scale": 1.5)")),
                30, 30, 60, 60, 45);
  // The shift is by shares of the sides before they become square, and turned with the region.
  expect_region(region_of(face, rule_of(R"("turn": {"start": 0, "end": 1, "target": 90},
                                           "shift": [0, -0.5], "scale": [2, 3])")),
                30 + 10 * std::sin(135 * std::acos(-1) / 180),
                30 - 10 * std::cos(135 * std::acos(-1) / 180), 80, 60, 135);
  const double reach = std::hypot(10, 10);
  expect_region(region_of(face, rule_of(R"("from": "alignment",
                                           "turn": {"start": 0, "end": 1, "target": -45})")),
                20, 20, 2 * reach, 2 * reach, 0);
  expect_region(region_of(face, rule_of(R"("from": "keypoints", "square": "short")")), 25, 25, 10,
                10, 0);
  EXPECT_THROW(region_of(detection_of({0, 0, 1, 1}, {{0, 0}}),
                         rule_of(R"("turn": {"start": 0, "end": 1, "target": 0})")),
               Error);
}

// A plate of 40 x 10 that is turned by 30 degrees, with a fifth more around it.
TEST(RegionTest, OrientedBoxesAreUprightInTheirRegions) {
  const double c = std::cos(std::acos(-1) / 6), s = 0.5;
  Detection plate;
  plate.corners = {{{50 - 20 * c + 5 * s, 60 - 20 * s - 5 * c},
                    {50 + 20 * c + 5 * s, 60 + 20 * s - 5 * c},
                    {50 + 20 * c - 5 * s, 60 + 20 * s + 5 * c},
                    {50 - 20 * c - 5 * s, 60 - 20 * s + 5 * c}}};
  expect_region(region_of(plate, rule_of(R"("from": "oriented", "scale": 1.2)")), 50, 60, 48, 12,
                30);
  EXPECT_THROW(region_of(detection_of({0, 0, 1, 1}, {}), rule_of(R"("from": "oriented")")), Error);
}

TEST(RegionTest, RulesThatMakeNoSenseAreRefused) {
  for (const char* members :
       {R"("from": "face")", R"("turn": {"start": 0, "end": 0, "target": 0})",
        R"("turn": {"start": 0, "end": 1})", R"("scale": 0)", R"("scale": [1])", R"("shift": 1)",
        R"("square": "both")", R"("from": "alignment")", R"("angle": 3)",
        R"("from": "oriented", "turn": {"start": 0, "end": 1, "target": 0})"}) {
    EXPECT_THROW(rule_of(members), Error) << members;
  }
}

}  // namespace
}  // namespace run_model
