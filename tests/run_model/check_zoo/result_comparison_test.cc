#include "run_model/check_zoo/result_comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace run_model {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr ResultTolerance kTolerance{.iou = 0.9,
                                     .score = 0.01,
                                     .pixels = 0.5,
                                     .agreement = 0.75,
                                     .map = 0.125,
                                     .levels = 1,
                                     .cosine = 0.75};

Detection face(double left, double score, std::size_t number = 0) {
  return {{left, 0, left + 10, 10}, number, "face", score, {{left + 5, 5, {}}}};
}

// Of one task, a detection above 0.5.
ResultComparison compare(const TaskResult& expected, const TaskResult& actual) {
  DetectionTask detection;
  detection.score_threshold = 0.5;
  Task task;
  task.what = detection;
  return compare_results({task}, {expected}, {actual}, kTolerance);
}

ResultComparison compare_faces(std::vector<Detection> expected, std::vector<Detection> actual) {
  return compare(DetectionResult{std::move(expected)}, DetectionResult{std::move(actual)});
}

TEST(ResultComparisonTest, EqualDetectionsInAnyOrder) {
  const ResultComparison comparison =
      compare_faces({face(0, 0.9), face(40, 0.8)}, {face(40, 0.8), face(0, 0.9)});
  EXPECT_THAT(comparison.failures, IsEmpty());
  EXPECT_THAT(comparison.measures, SizeIs(3));
  for (const ResultMeasure& measure : comparison.measures) EXPECT_EQ(measure.tolerance_used, 0);
}

TEST(ResultComparisonTest, SmallDifferencesUseUpTheTolerance) {
  const ResultComparison comparison = compare_faces({face(0, 0.9)}, {face(0.25, 0.905)});
  EXPECT_THAT(comparison.failures, IsEmpty());
  EXPECT_EQ(comparison.measures[0].name, "iou");
  EXPECT_NEAR(comparison.measures[0].worst, 9.75 / 10.25, 1e-9);
  EXPECT_NEAR(comparison.measures[1].tolerance_used, 0.5, 1e-9);
  EXPECT_NEAR(comparison.measures[2].tolerance_used, 0.5, 1e-9);
}

TEST(ResultComparisonTest, WhatIsMissedOrMadeUpFails) {
  EXPECT_THAT(compare_faces({face(0, 0.9)}, {}).failures.at(0).message,
              HasSubstr("the reference finds class 0 ('face')"));
  EXPECT_THAT(compare_faces({}, {face(0, 0.9)}).failures.at(0).message,
              HasSubstr("and the reference does not"));
  EXPECT_THAT(compare_faces({face(0, 0.9)}, {face(0, 0.9, 1)}).failures, SizeIs(2));
  EXPECT_THAT(compare_faces({face(0, 0.9)}, {face(0, 0.9), face(0, 0.9)}).failures, SizeIs(1));
}

TEST(ResultComparisonTest, WhatIsAtTheThresholdMayBeThereOrNot) {
  EXPECT_THAT(compare_faces({face(0, 0.505)}, {}).failures, IsEmpty());
  EXPECT_THAT(compare_faces({}, {face(0, 0.505)}).failures, IsEmpty());
  EXPECT_THAT(compare_faces({face(0, 0.52)}, {}).failures, SizeIs(1));
}

TEST(ResultComparisonTest, EachMeasureIsHeldToItsLimit) {
  EXPECT_THAT(compare_faces({face(0, 0.9)}, {face(0, 0.92)}).failures, SizeIs(1));
  // The box overlaps by 9 / 11, and its point is a pixel away.
  EXPECT_THAT(compare_faces({face(0, 0.9)}, {face(1, 0.9)}).failures, SizeIs(2));
  Detection blind = face(0, 0.9);
  blind.keypoints.clear();
  EXPECT_THAT(compare_faces({face(0, 0.9)}, {blind}).failures.at(0).message,
              HasSubstr("0 keypoints, expected 1"));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Detection lost = face(0, 0.9);
  lost.keypoints[0].x = nan;
  EXPECT_THAT(compare_faces({face(0, 0.9)}, {lost}).failures, SizeIs(1));
}

TEST(ResultComparisonTest, WhatIsThinnerThanAPixelIsAPixelWide) {
  const auto line = [](double right) {
    Detection found = face(0, 0.9);
    found.box = {5, 0, right, 100};
    return found;
  };
  EXPECT_THAT(compare_faces({line(5.05)}, {line(5.06)}).failures, IsEmpty());
  EXPECT_THAT(compare_faces({line(5)}, {line(5)}).failures, IsEmpty());
  EXPECT_THAT(compare_faces({line(5.05)}, {line(5.4)}).failures, SizeIs(1));
}

TEST(ResultComparisonTest, BoxesWithAnAngleOverlapAsTheyAreTurned) {
  const auto turned = [](double reach) {
    Detection found = face(0, 0.9);
    found.corners = {{{5, 5 - reach}, {5 + reach, 5}, {5, 5 + reach}, {5 - reach, 5}}};
    return found;
  };
  EXPECT_THAT(compare_faces({turned(5)}, {turned(5)}).failures, IsEmpty());
  // The same upright boxes around them count for nothing; 16 of 25 do.
  EXPECT_THAT(compare_faces({turned(5)}, {turned(4)}).failures, SizeIs(1));
  EXPECT_THAT(compare_faces({turned(5)}, {face(0, 0.9)}).failures, SizeIs(2));
}

TEST(ResultComparisonTest, MasksAgreeOnAShareOfTheirPixels) {
  const SegmentationResult mask{2, 2, {0, 1, 1, 255}, 2};
  EXPECT_THAT(compare(mask, SegmentationResult{2, 2, {0, 1, 1, 255}, 2}).failures, IsEmpty());
  EXPECT_THAT(compare(mask, SegmentationResult{2, 2, {1, 1, 1, 255}, 2}).failures, IsEmpty());
  EXPECT_THAT(compare(mask, SegmentationResult{2, 2, {1, 0, 1, 255}, 2}).failures, SizeIs(1));
  EXPECT_THAT(compare(mask, SegmentationResult{4, 1, {0, 1, 1, 255}, 2}).failures, SizeIs(1));
}

TEST(ResultComparisonTest, LandmarksAreComparedPointByPoint) {
  const LandmarksResult reference{0.9, true, {{1, 2, 3, {}, 0.5, {}}, {4, 5, 6, {}, 0.5, {}}}};
  LandmarksResult other = reference;
  EXPECT_THAT(compare(reference, other).failures, IsEmpty());
  other.points[1].x += 0.75;
  EXPECT_THAT(compare(reference, other).failures.at(0).message, HasSubstr("point 1 is 0.75"));
  other = reference;
  other.points[0].visibility = 0.6;
  other.points[1].z.reset();
  EXPECT_THAT(compare(reference, other).failures, SizeIs(2));
  other = reference;
  other.points.pop_back();
  other.confidence = 0.8;
  EXPECT_THAT(compare(reference, other).failures, SizeIs(2));
}

TEST(ResultComparisonTest, MapsByASharedRange) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const MapResult reference{4, 1, {1, 2, 9, nan}};
  const ResultComparison comparison = compare(reference, MapResult{4, 1, {1, 2, 8.5F, nan}});
  EXPECT_THAT(comparison.failures, IsEmpty());
  EXPECT_EQ(comparison.measures.at(1).name, "map");
  EXPECT_EQ(comparison.measures.at(1).worst, 0.0625);
  EXPECT_THAT(compare(reference, MapResult{4, 1, {1, 3.5F, 9, nan}}).failures.at(0).message,
              HasSubstr("differs by 1.5, which is 0.1875 of the reference's range"));
  // One of four pixels may be seen by one only, and no more.
  EXPECT_THAT(compare(reference, MapResult{4, 1, {1, 2, nan, nan}}).failures, IsEmpty());
  EXPECT_THAT(compare(reference, MapResult{4, 1, {1, nan, nan, nan}}).failures, SizeIs(1));
  EXPECT_THAT(compare(reference, MapResult{2, 2, {1, 2, 9, nan}}).failures, SizeIs(1));
  const MapResult flat{2, 1, {4, 4}};
  EXPECT_THAT(compare(flat, MapResult{2, 1, {4, 4}}).failures, IsEmpty());
  EXPECT_THAT(compare(flat, MapResult{2, 1, {4, 4.25F}}).failures, IsEmpty());
  EXPECT_THAT(compare(flat, MapResult{2, 1, {4, 5}}).failures, SizeIs(1));
}

TEST(ResultComparisonTest, ImagesByTheirBytes) {
  const ImageResult reference{2, 1, {10, 20, 30, 0, 255, 7}, {}};
  EXPECT_THAT(compare(reference, ImageResult{2, 1, {11, 20, 30, 1, 254, 7}, {}}).failures,
              IsEmpty());
  EXPECT_THAT(
      compare(reference, ImageResult{2, 1, {10, 20, 30, 0, 253, 7}, {}}).failures.at(0).message,
      HasSubstr("a byte differs by 2, allowed are 1"));
  EXPECT_THAT(compare(reference, ImageResult{1, 2, {10, 20, 30, 0, 255, 7}, {}}).failures,
              SizeIs(1));
  // What one has not seen is not compared, but half of the pixels is too much of that.
  EXPECT_THAT(compare(reference, ImageResult{2, 1, {10, 20, 30, 9, 9, 9}, {1, 0}}).failures,
              SizeIs(1));
}

TEST(ResultComparisonTest, EmbeddingsByTheirAngle) {
  const EmbeddingResult reference{{3, 4}};
  EXPECT_THAT(compare(reference, EmbeddingResult{{6, 8}}).failures, IsEmpty());
  EXPECT_THAT(compare(reference, EmbeddingResult{{4, 3}}).failures, IsEmpty());  // 0.96
  EXPECT_THAT(compare(reference, EmbeddingResult{{4, 0}}).failures, SizeIs(1));
  EXPECT_THAT(compare(reference, EmbeddingResult{{3, 4, 0}}).failures, SizeIs(1));
}

TEST(ResultComparisonTest, ClassesByTheirProbabilities) {
  const ClassificationResult reference{{{1, "left", 0.75}, {0, "right", 0.25}}};
  EXPECT_THAT(compare(reference, reference).failures, IsEmpty());
  EXPECT_THAT(compare(reference, ClassificationResult{{{1, "left", 1}}}).failures, SizeIs(2));
  EXPECT_THAT(compare(reference, DetectionResult{}).failures.at(0).rule, "kind");
}

}  // namespace
}  // namespace run_model
