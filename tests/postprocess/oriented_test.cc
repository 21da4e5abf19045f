// Boxes with an angle.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <run_model/postprocess.h>
#include "postprocess/detection/oriented_boxes.h"

namespace run_model {
namespace {

const double kQuarter = std::acos(-1) / 2;

double area_overlap(const Box& a, double angle_a, const Box& b, double angle_b) {
  return intersection_over_union(turned_corners(a, angle_a), turned_corners(b, angle_b));
}

TEST(OrientedTest, CornersGoClockwiseFromTheLeftTopOne) {
  const Corners corners = turned_corners({0, 0, 4, 2}, kQuarter);
  const Corners expected{{{3, -1}, {3, 3}, {1, 3}, {1, -1}}};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(corners[i][0], expected[i][0], 1e-12) << i;
    EXPECT_NEAR(corners[i][1], expected[i][1], 1e-12) << i;
  }
  EXPECT_NEAR(side_angle(corners), 90, 1e-12);
  const Box around = box_around(corners);
  EXPECT_NEAR(around.left, 1, 1e-12);
  EXPECT_NEAR(around.bottom, 3, 1e-12);
}

TEST(OrientedTest, AreasOverlap) {
  const Box square{0, 0, 2, 2};
  EXPECT_NEAR(area_overlap(square, 0, square, 0), 1, 1e-12);
  EXPECT_NEAR(area_overlap(square, 0.3, square, 0.3 + kQuarter), 1, 1e-12);
  EXPECT_NEAR(area_overlap(square, 0, {1, 0, 3, 2}, 0), 1.0 / 3, 1e-12);
  // A square and itself turned by an eighth: an octagon of 8 (sqrt(2) - 1).
  const double octagon = 8 * (std::sqrt(2) - 1);
  EXPECT_NEAR(area_overlap(square, 0, square, kQuarter / 2), octagon / (8 - octagon), 1e-12);
  // A long one across, and one beside it whose upright boxes overlap.
  EXPECT_NEAR(area_overlap({0, 0, 6, 2}, 0, {0, 0, 6, 2}, kQuarter), 4.0 / 20, 1e-12);
  EXPECT_EQ(area_overlap({0, 0, 20, 1}, kQuarter / 2, {4, -4, 24, -3}, kQuarter / 2), 0);
  EXPECT_EQ(area_overlap({0, 0, 0, 0}, 0.5, {0, 0, 0, 0}, 0.5), 0);
}

TEST(OrientedTest, NormalDistributionsOverlap) {
  const auto overlap = [](const Box& a, double angle_a, const Box& b, double angle_b) {
    return probabilistic_overlap(NormalBox(a, angle_a), NormalBox(b, angle_b));
  };
  const Box box{0, 0, 30, 10};
  EXPECT_NEAR(overlap(box, 0.2, box, 0.2), 1 - std::sqrt(2e-7), 1e-5);
  EXPECT_NEAR(overlap(box, 0.2, box, 0.2 + 2 * kQuarter), overlap(box, 0.2, box, 0.2), 1e-9);
  // Means apart along x by 10, variances of 75 each: B = 100 / (2 * 75 * 4).
  EXPECT_NEAR(overlap(box, 0, {10, 0, 40, 10}, 0), 1 - std::sqrt(1 - std::exp(-100.0 / 600)), 1e-6);
  EXPECT_LT(overlap(box, 0, {1000, 0, 1030, 10}, 0), 1e-6);
  EXPECT_TRUE(std::isfinite(overlap({0, 0, 0, 0}, 0, {5, 5, 5, 5}, 1)));
}

std::size_t left_of(const std::string& nms) {
  const Task task = parse_tasks(R"({"kind": "detection", "form": "box-rows", "output": 0,
    "box_format": "cxcywh", "units": "pixels", "score_threshold": 0.1,
    "angle": {"unit": "degrees", "direction": "clockwise"}, "nms": {"iou": 0.4, "per_class": true,)" +
                                    nms + "}}",
                                "task")
                        .at(0);
  NetworkOutput output;
  output.tensor = Tensor::empty({1, 4, 7}, DLDataType{kDLFloat, 32, 1});
  // Each overlaps the next by half or more of both, and not the one behind that; the last is of
  // another class.
  const std::vector<float> rows{20, 20, 20, 10, 0.9F, 0, 30, 26, 23, 20, 10, 0.8F, 0, 30,
                                32, 26, 20, 10, 0.7F, 0, 30, 20, 20, 20, 10, 0.6F, 1, 30};
  std::copy(rows.begin(), rows.end(), output.tensor.elements<float>().begin());
  PreprocessReport picture;
  picture.original_width = picture.original_height = picture.input_width = picture.input_height =
      100;
  return std::get<DetectionResult>(postprocess(task, std::vector{output}, picture))
      .detections.size();
}

TEST(OrientedTest, FastSuppressionTakesWhatIsGoneAsAReasonToo) {
  EXPECT_EQ(left_of(R"("overlap": "area")"), 3U);
  EXPECT_EQ(left_of(R"("overlap": "area", "mode": "fast")"), 2U);
  EXPECT_EQ(left_of(R"("overlap": "probabilistic", "mode": "fast")"), 2U);
}

}  // namespace
}  // namespace run_model
