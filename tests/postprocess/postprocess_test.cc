#include <run_model/postprocess.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "tests/has_elements.h"
#include "tests/postprocess/outputs.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using ::testing::DoubleNear;
using ::testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <typename T>
NetworkOutput stored(const std::string& name, std::vector<std::int64_t> shape, DLDataType type,
                     const std::vector<T>& values, double scale, std::int64_t zero_point) {
  NetworkOutput result{name, "", Tensor::empty(std::move(shape), type), scale, zero_point};
  std::copy(values.begin(), values.end(), result.tensor.elements<T>().begin());
  return result;
}

// A picture of 200 x 100 squashed into an input of 100 x 100.
PreprocessReport squashed() {
  PreprocessReport picture;
  picture.original_width = 200;
  picture.original_height = picture.input_width = picture.input_height = 100;
  picture.scale_x = 0.5;
  return picture;
}

Task task(const std::string& text) { return parse_tasks(text, "task").at(0); }

Task rows_task(const std::string& more = "") {
  return task(R"({"kind": "detection", "form": "box-rows", "output": "rows", "box_format": "xyxy",
    "units": "pixels", "score_threshold": 0.5)" +
              more + "}");
}

DetectionResult detections(const Task& what, const std::vector<NetworkOutput>& outputs) {
  return std::get<DetectionResult>(postprocess(what, outputs, squashed()));
}

std::vector<NetworkOutput> one_row(std::vector<float> row) {
  return {output("rows", {1, 1, 6}, row)};
}

TEST(PostprocessTest, BoxesGoBackToThePicture) {
  const DetectionResult result = detections(rows_task(), one_row({10, 20, 30, 40, 0.75F, 3}));
  ASSERT_EQ(result.detections.size(), 1U);
  const Detection& found = result.detections[0];
  EXPECT_EQ(found.box.left, 20);
  EXPECT_EQ(found.box.top, 20);
  EXPECT_EQ(found.box.right, 60);
  EXPECT_EQ(found.box.bottom, 40);
  EXPECT_EQ(found.class_index, 3U);
  EXPECT_EQ(found.score, 0.75);
}

TEST(PostprocessTest, ScoresBelowTheThresholdAndNoRowsAreNothing) {
  EXPECT_THAT(detections(rows_task(), one_row({10, 20, 30, 40, 0.25F, 3})).detections, IsEmpty());
  EXPECT_THAT(detections(rows_task(), {output("rows", {0, 6}, {})}).detections, IsEmpty());
  EXPECT_EQ(detections(rows_task(), one_row({10, 20, 30, 40, 0.5F, 3})).detections.size(), 1U);
}

TEST(PostprocessTest, ReadyBoxesNeedNoBatchAndMayBeNone) {
  const Task what = task(R"({"kind": "detection", "form": "boxes", "boxes": 0, "classes": 1,
    "scores": 2, "box_format": "xyxy", "units": "pixels", "score_threshold": 0})");
  const auto found = [&](const std::vector<float>& boxes, const std::vector<std::int64_t>& classes,
                         const std::vector<float>& scores) {
    const auto count = static_cast<std::int64_t>(classes.size());
    return detections(what, {output("b", {count, 4}, boxes),
                             stored<std::int64_t>("c", {count}, {kDLInt, 64, 1}, classes, 1.0, 0),
                             output("s", {count}, scores)})
        .detections;
  };
  EXPECT_THAT(found({}, {}, {}), IsEmpty());
  EXPECT_EQ(found({10, 20, 30, 40}, {90}, {0.5F}).at(0).class_index, 90U);
  EXPECT_EQ(found({0, 0, 1, 1, 10, 20, 30, 40}, {3, 90}, {0.25F, 0.5F}).at(0).box.right, 60);
}

TEST(PostprocessTest, EqualScoresKeepTheirOrder) {
  const Task what = rows_task(R"(, "nms": {"iou": 0.5, "per_class": false}, "limit": 2)");
  const DetectionResult result = detections(
      what, {output("rows", {4, 6}, {0,  0,  10, 10, 0.5F, 4, 0,  0,  10, 10, 0.5F, 1,
                                     50, 50, 60, 60, 0.5F, 2, 70, 70, 80, 80, 0.5F, 3})});
  ASSERT_EQ(result.detections.size(), 2U);
  EXPECT_EQ(result.detections[0].class_index, 4U);
  EXPECT_EQ(result.detections[1].class_index, 2U);
}

TEST(PostprocessTest, SuppressesFromMoreThanTheThresholdOn) {
  // Two boxes that overlap by exactly a third.
  const std::vector<NetworkOutput> rows{
      output("rows", {2, 6}, {0, 0, 20, 10, 0.9F, 0, 10, 0, 30, 10, 0.8F, 0})};
  const auto left = [&](const std::string& iou) {
    return detections(rows_task(R"(, "nms": {"per_class": true, "iou": )" + iou + "}"), rows)
        .detections.size();
  };
  EXPECT_EQ(left("0.33333"), 1U);
  EXPECT_EQ(left("0.33334"), 2U);
}

TEST(PostprocessTest, RefusesWhatIsNoBox) {
  const auto refused = [](std::vector<float> row, ErrorKind kind, const std::string& text) {
    EXPECT_TRUE(throws_error(
        [&] { detections(rows_task(R"(, "labels": ["a", "b"])"), one_row(row)); }, kind, text));
  };
  refused({kNan, 20, 30, 40, 0.75F, 1}, ErrorKind::kModel, "the output 'rows' holds NaN");
  refused({10, 20, kInfinity, 40, 0.75F, 1}, ErrorKind::kModel, "holds infinity at element 2");
  refused({30, 20, 10, 40, 0.75F, 1}, ErrorKind::kModel, "sides are negative");
  refused({10, 20, 30, 40, 1.5F, 1}, ErrorKind::kModel, "gives a score of 1.5");
  refused({10, 20, 30, 40, -0.5F, 1}, ErrorKind::kModel, "gives a score of -0.5");
  refused({10, 20, 30, 40, 0.75F, 2}, ErrorKind::kModel, "the class 2");
  refused({10, 20, 30, 40, 0.75F, 0.5F}, ErrorKind::kModel, "the class 0.5");
}

TEST(PostprocessTest, RefusesOutputsOfOtherForms) {
  EXPECT_TRUE(
      throws_error([] { detections(rows_task(), {output("rows", {1, 7}, std::vector<float>(7))}); },
                   ErrorKind::kMismatch, "expected rows of 6 numbers"));
  EXPECT_TRUE(throws_error(
      [] { detections(rows_task(), {output("other", {1, 6}, std::vector<float>(6))}); },
      ErrorKind::kMismatch, "outputs are 'other'"));
  const Task v8 = task(R"({"kind": "detection", "form": "yolo-v8", "output": 0, "nms": null,
    "units": "pixels", "score_threshold": 0.5, "labels": ["a", "b"]})");
  EXPECT_TRUE(
      throws_error([&] { detections(v8, {output("o", {1, 9, 6}, std::vector<float>(54))}); },
                   ErrorKind::kMismatch, "6 numbers for each candidate"));
  PreprocessReport nothing;
  const auto run = [&] { postprocess(rows_task(), one_row({10, 20, 30, 40, 0.75F, 3}), nothing); };
  EXPECT_TRUE(throws_error(run, ErrorKind::kMismatch, "report of preprocessing"));
}

// An exponent of 1000 is no side.
TEST(PostprocessTest, RefusesBoxesThatAreInfinitelyLarge) {
  const Task heads = task(R"({"kind": "detection", "form": "yolo-heads", "outputs": [0],
    "anchors": [[[10, 10]]], "coding": "v3", "layout": "NCHW", "score_threshold": 0.25,
    "nms": null})");
  EXPECT_TRUE(
      throws_error([&] { detections(heads, {output("o", {1, 6, 1, 1}, {0, 0, 1000, 0, 5, 5})}); },
                   ErrorKind::kModel, "infinitely large"));
}

TEST(PostprocessTest, TakesIntegersByTheirScale) {
  const Task what = task(R"({"kind": "detection", "form": "boxes", "boxes": "b", "scores": "s",
    "classes": "c", "box_format": "xywh", "units": "normalized", "score_threshold": 0.5})");
  const std::vector<NetworkOutput> outputs{
      stored<std::uint8_t>("b", {1, 1, 4}, {kDLUInt, 8, 1}, {28, 28, 78, 53}, 0.01, 3),
      stored<std::int8_t>("s", {1, 1}, {kDLInt, 8, 1}, {72}, 1.0 / 256, -128),
      stored<std::int64_t>("c", {1, 1}, {kDLInt, 64, 1}, {5}, 1.0, 0)};
  const DetectionResult result = detections(what, outputs);
  ASSERT_EQ(result.detections.size(), 1U);
  EXPECT_THAT(result.detections[0].box.left, DoubleNear(50, 1e-4));
  EXPECT_THAT(result.detections[0].box.right, DoubleNear(200, 1e-4));
  EXPECT_THAT(result.detections[0].box.bottom, DoubleNear(75, 1e-4));
  EXPECT_THAT(result.detections[0].score, DoubleNear(200.0 / 256, 1e-6));
  EXPECT_EQ(result.detections[0].class_index, 5U);
}

TEST(PostprocessTest, FindsLandmarksAndTheirConfidence) {
  const Task what = task(R"({"kind": "landmarks", "output": "p", "points": 2, "units": "pixels",
    "columns": ["y", "x", "visibility"], "point_activation": "sigmoid", "confidence": "c",
    "confidence_activation": "none"})");
  const auto found = [&](float confidence) {
    return std::get<LandmarksResult>(
        postprocess(what,
                    std::vector{output("p", {1, 9}, {10, 20, 0, 30, 40, 100, 7, 7, 7}),
                                output("c", {1, 1, 1, 1}, {confidence})},
                    squashed()));
  };
  const LandmarksResult result = found(0.75F);
  EXPECT_TRUE(result.present);
  ASSERT_EQ(result.points.size(), 2U);
  EXPECT_EQ(result.points[1].x, 80);
  EXPECT_EQ(result.points[1].y, 30);
  EXPECT_EQ(result.points[0].visibility, 0.5);
  EXPECT_FALSE(found(0.25F).present);
  EXPECT_TRUE(throws_error([&] { found(3.0F); }, ErrorKind::kModel, "a confidence of 3"));
}

// What does not fit a described mask or grid is refused before any number of it is read.
TEST(PostprocessTest, RefusesRowsAndPrototypesThatDoNotFit) {
  const auto refused = [](const char* task, const std::vector<NetworkOutput>& outputs) {
    PreprocessReport picture;
    picture.original_width = picture.input_width = 32;
    picture.original_height = picture.input_height = 16;
    try {
      postprocess(parse_tasks(task, "t.json").front(), outputs, picture);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto output = [](const char* name, const std::vector<std::int64_t>& shape) {
    Tensor tensor = Tensor::empty(shape, DLDataType{kDLFloat, 32, 1});
    std::fill(tensor.elements<float>().begin(), tensor.elements<float>().end(), 0.5F);
    return NetworkOutput{name, "", tensor};
  };
  const char* const yolox = R"({"kind": "detection", "form": "yolo-rows", "output": "o",
    "units": "pixels", "strides": [8, 16], "score_threshold": 0.25, "nms": null})";
  EXPECT_EQ(refused(yolox, {output("o", {1, 10, 6})}), "accepted");
  EXPECT_THAT(refused(yolox, {output("o", {1, 9, 6})}), testing::HasSubstr("10 rows"));
  const char* const masks = R"({"kind": "detection", "form": "yolo-v8", "output": "o",
    "units": "pixels", "score_threshold": 0.25, "nms": null,
    "masks": {"output": "p", "count": 3, "layout": "NCHW"}})";
  EXPECT_EQ(refused(masks, {output("o", {1, 8, 5}), output("p", {1, 3, 4, 8})}), "accepted");
  EXPECT_THAT(refused(masks, {output("o", {1, 8, 5}), output("p", {1, 4, 4, 8})}),
              testing::HasSubstr("3 prototypes"));
  EXPECT_THAT(refused(masks, {output("o", {1, 7, 5}), output("p", {1, 3, 4, 8})}),
              testing::HasSubstr("more than 7 numbers"));
  EXPECT_THAT(refused(masks, {output("o", {1, 8, 5})}), testing::HasSubstr("'p'"));
}

TEST(PostprocessTest, ThingsWithAnEmptyMaskAreLeftOutOnlyWhereTheTaskSaysSo) {
  // One prototype above 0 everywhere; the factor of the second thing turns it around.
  const std::vector<NetworkOutput> outputs{
      output("rows", {1, 2, 7}, {10, 10, 60, 60, 0.9F, 0, 1, 10, 10, 60, 60, 0.8F, 1, -1}),
      output("p", {1, 1, 2, 2}, {1, 1, 1, 1})};
  const auto classes = [&](const std::string& more) {
    const auto found = std::get<DetectionResult>(
        postprocess(task(R"({"kind": "detection", "form": "box-rows", "output": 0,
          "box_format": "xyxy", "units": "pixels", "score_threshold": 0.5, "nms": null,
          "masks": {"output": 1, "count": 1, "layout": "NCHW")" +
                         more + "}}"),
                    outputs, squashed()));
    std::vector<std::size_t> numbers;
    for (const Detection& thing : found.detections) numbers.push_back(thing.class_index);
    return numbers;
  };
  EXPECT_TRUE(has_elements(classes(""), {0, 1}));
  EXPECT_TRUE(has_elements(classes(R"(, "drop_empty": false)"), {0, 1}));
  EXPECT_TRUE(has_elements(classes(R"(, "drop_empty": true)"), {0}));
}

TEST(PostprocessTest, MasksAreInterpolatedAndThenDecided) {
  const std::vector<NetworkOutput> outputs{output("m", {1, 1, 1, 2}, {0, 1})};
  const auto classes = [&](const std::string& more) {
    PreprocessReport picture = squashed();
    picture.original_width = 8;
    picture.original_height = 1;
    picture.scale_x = 12.5;
    picture.scale_y = 100;
    return std::get<SegmentationResult>(
               postprocess(task(R"({"kind": "segmentation", "output": "m", "form": "mask",
                 "activation": "none")" +
                                more + "}"),
                           outputs, picture))
        .classes;
  };
  EXPECT_TRUE(has_elements(classes(""), {0, 0, 0, 0, 1, 1, 1, 1}));
  EXPECT_TRUE(has_elements(classes(R"(, "threshold": 0.1)"), {0, 0, 1, 1, 1, 1, 1, 1}));
  EXPECT_TRUE(has_elements(classes(R"(, "threshold": 0.1, "resample": "nearest")"),
                           {0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST(PostprocessTest, RefusesMapsOfOtherForms) {
  const Task indices = task(R"({"kind": "segmentation", "output": 0, "form": "indices",
    "labels": ["sky", "sea"]})");
  const auto run = [](const Task& what, const NetworkOutput& map) {
    postprocess(what, std::vector{map}, squashed());
  };
  EXPECT_TRUE(throws_error([&] { run(indices, output("m", {1, 2, 2}, {0, 1, 2, 0})); },
                           ErrorKind::kModel, "expected the number of a class, 0 to 1"));
  EXPECT_TRUE(throws_error([&] { run(indices, output("m", {2, 2, 2}, std::vector<float>(8))); },
                           ErrorKind::kMismatch, "a map of"));
  const Task scores = task(R"({"kind": "segmentation", "output": 0, "form": "scores",
    "layout": "NHWC", "labels": ["sky", "sea"]})");
  EXPECT_TRUE(throws_error([&] { run(scores, output("m", {1, 2, 4, 4}, std::vector<float>(32))); },
                           ErrorKind::kMismatch, "scores of 2 classes as [1, H, W, C]"));
}

TEST(PostprocessTest, ClassifiesAndEmbeds) {
  const auto classes = [](const std::string& more, const std::vector<float>& scores) {
    const auto count = static_cast<std::int64_t>(scores.size());
    return std::get<ClassificationResult>(
        postprocess(task(R"({"kind": "classification", "output": 0)" + more + "}"),
                    std::vector{output("o", {1, count}, scores)}, squashed(), 2));
  };
  const ClassificationResult hand =
      classes(R"(, "binary": true, "activation": "none", "labels": ["left", "right"])", {0.25F});
  EXPECT_EQ(hand.classes.at(0).label, "left");
  EXPECT_EQ(hand.classes.at(0).probability, 0.75);
  EXPECT_EQ(classes("", {0, 3, 1}).classes.size(), 2U);
  EXPECT_THAT(classes("", {0, 3, 1}).classes[0].probability, DoubleNear(0.8438, 1e-4));
  EXPECT_THAT(classes(R"(, "activation": "sigmoid")", {0, 3, 1}).classes[0].probability,
              DoubleNear(0.9526, 1e-4));
  const auto embedding = [](const std::vector<float>& values) {
    return std::get<EmbeddingResult>(postprocess(task(R"({"kind": "embedding", "output": 0})"),
                                                 std::vector{output("o", {1, 2}, values)},
                                                 squashed()));
  };
  EXPECT_THAT(cosine_similarity(embedding({1, 0}), embedding({3, 4})), DoubleNear(0.6, 1e-12));
  EXPECT_TRUE(throws_error([&] { cosine_similarity(embedding({0, 0}), embedding({3, 4})); },
                           ErrorKind::kModel, "is zero"));
}

}  // namespace
}  // namespace run_model
