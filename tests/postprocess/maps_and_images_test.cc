// Numbers and colours for each pixel, and peaks of maps.
#include <run_model/postprocess.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <run_model/error.h>
#include "tests/postprocess/outputs.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using ::testing::ElementsAre;

// A picture of 4 x 2 in the middle rows of an input of 4 x 4.
PreprocessReport letterboxed() {
  PreprocessReport picture;
  picture.original_width = picture.input_width = picture.input_height = 4;
  picture.original_height = 2;
  picture.offset_y = 1;
  return picture;
}

TaskResult result_of(const std::string& task, const std::vector<NetworkOutput>& outputs) {
  return postprocess(parse_tasks(task, "task").at(0), outputs, letterboxed());
}

std::string map_task(const std::string& more) {
  return R"({"kind": "map", "output": 0, "resample": "nearest", )" + more + "}";
}

std::string image_task(const std::string& range, const std::string& more = "") {
  return R"({"kind": "image", "output": 0, "layout": "NCHW", "color_order": "GRAY", "range": )" +
         range + more + "}";
}

constexpr float kLargest = std::numeric_limits<float>::max();

std::vector<float> numbers(std::size_t count, float value) {
  return std::vector<float>(count, value);
}

TEST(MapsAndImagesTest, DepthIsScaledAndNothingIsNearerThanNothing) {
  std::vector<float> depths(16, 9.0F);
  depths[4] = 0.5F;
  const auto map = std::get<MapResult>(result_of(
      map_task(R"("quantity": "depth", "unit": "m", "scale": 2)"), {output("d", {4, 4}, depths)}));
  EXPECT_THAT(map.values, ElementsAre(1, 18, 18, 18, 18, 18, 18, 18));
  depths[4] = -0.5F;
  EXPECT_TRUE(throws_error(
      [&] { result_of(map_task(R"("quantity": "depth")"), {output("d", {4, 4}, depths)}); },
      ErrorKind::kModel, "nothing is nearer than 0"));
  EXPECT_NO_THROW(
      result_of(map_task(R"("quantity": "inverse-depth")"), {output("d", {4, 4}, depths)}));
  EXPECT_TRUE(throws_error(
      [&] {
        result_of(map_task(R"("quantity": "other", "scale": 10)"),
                  {output("d", {4, 4}, numbers(16, kLargest))});
      },
      ErrorKind::kModel, "\"scale\""));
}

TEST(MapsAndImagesTest, CubicConvolutionLeavesNoNegativeDepth) {
  std::vector<float> depths(64, 0.0F);
  for (std::size_t i = 0; i < 64; ++i) depths[i] = i % 8 < 4 ? 0.0F : 10.0F;
  const auto least = [&](const std::string& quantity) {
    PreprocessReport picture = letterboxed();
    picture.original_width = picture.input_width = 19;
    const Task task = parse_tasks(
        R"({"kind": "map", "output": 0, "resample": "bicubic", "quantity": ")" + quantity + "\"}",
        "task")[0];
    const std::vector outputs{output("d", {1, 8, 8}, depths)};
    return map_statistics(std::get<MapResult>(postprocess(task, outputs, picture)), {}).least;
  };
  EXPECT_LT(least("other"), -0.1);
  EXPECT_EQ(least("depth"), 0.0);
}

TEST(MapsAndImagesTest, QuantilesLieBetweenTheNumbers) {
  const float nan = std::nanf("");
  const MapStatistics found = map_statistics({5, 1, {4, nan, 1, 2, 8}}, {0, 0.5, 0.75, 1});
  EXPECT_EQ(found.seen, 4U);
  EXPECT_EQ(found.mean, 3.75);
  EXPECT_THAT(found.quantiles, ElementsAre(1, 3, 5, 8));
  EXPECT_EQ(map_statistics({1, 1, {nan}}, {0.5}).seen, 0U);
}

TEST(MapsAndImagesTest, ImagesLoseTheirPaddingAndKeepTheirSize) {
  std::vector<float> levels(64, 0.25F);
  for (std::size_t i = 0; i < 16; ++i) levels[i] = -1.0F;  // above the picture
  levels[16] = 1.5F;
  const auto image =
      std::get<ImageResult>(result_of(image_task("[0, 1]"), {output("i", {1, 1, 8, 8}, levels)}));
  EXPECT_EQ(image.width, 8);
  EXPECT_EQ(image.height, 4);
  EXPECT_TRUE(image.seen.empty());
  EXPECT_EQ(image.pixels.at(0), 255);
  EXPECT_EQ(image.pixels.at(3), 64);
  EXPECT_EQ(image.cut_off, 17.0 / 64);
  EXPECT_EQ(image.most, 1.5);
}

TEST(MapsAndImagesTest, ARangeThatIsAnotherNetworksIsRefused) {
  const auto refuses = [](const std::string& task, const NetworkOutput& given, ErrorKind kind,
                          const std::string& text) {
    return throws_error([&] { result_of(task, {given}); }, kind, text);
  };
  EXPECT_TRUE(refuses(image_task("[0, 1]"), output("i", {1, 1, 4, 4}, numbers(16, 128)),
                      ErrorKind::kModel, "far beyond the \"range\""));
  EXPECT_TRUE(refuses(image_task("[1, 0]"), output("i", {1, 1, 4, 4}, numbers(16, kLargest)),
                      ErrorKind::kModel, "far beyond the \"range\""));
  EXPECT_TRUE(refuses(image_task("[0, 1]"), output("i", {1, 3, 4, 4}, numbers(48, 0)),
                      ErrorKind::kMismatch, "one channel, GRAY, as [1, C, H, W]"));
  for (const char* range : {"[0, 0]", "[1]", "[0, 1e9]", "[[0, 1], [0, 1], [0, 1]]", "[]", "1"}) {
    EXPECT_TRUE(
        throws_error([&] { parse_tasks(image_task(range), "task"); }, ErrorKind::kFormat, "range"))
        << range;
  }
}

std::string centers_task(const std::string& more = "") {
  return R"({"kind": "detection", "form": "centers", "heatmap": "h", "sizes": "s",
    "layout": "NCHW", "order": "xy", "size_unit": "pixels", "activation": "none",
    "score_threshold": 0.5)" +
         more + "}";
}

// Equal neighbours are peaks both, as of max-pooling; a class is no other one's neighbour.
TEST(MapsAndImagesTest, PeaksAreOfTheirClassAndTheBackgroundIsNone) {
  const std::vector<NetworkOutput> outputs{
      output("h", {1, 2, 2, 2}, {0.75F, 0.75F, 0.5F, 0.25F, 0.625F, 0, 0, 0}),
      output("s", {1, 2, 2, 2}, numbers(8, 2))};
  const auto boxes = [&](const std::string& more) {
    return std::get<DetectionResult>(result_of(centers_task(more), outputs)).detections;
  };
  const std::vector<Detection> found = boxes("");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].score, 0.75);
  EXPECT_EQ(found[0].box.left, 0);
  EXPECT_EQ(found[1].box.left, 2);
  EXPECT_EQ(found[1].box.top, -1);
  EXPECT_EQ(found[2].class_index, 1U);
  ASSERT_EQ(boxes(R"(, "background": 0)").size(), 1U);
  EXPECT_EQ(boxes(R"(, "background": 0)")[0].class_index, 1U);
  EXPECT_EQ(boxes(R"(, "limit": 2)").size(), 2U);
}

TEST(MapsAndImagesTest, CentersThatDoNotFitAreRefused) {
  const NetworkOutput heat = output("h", {1, 1, 2, 2}, numbers(4, 0.75F));
  const NetworkOutput sizes = output("s", {1, 2, 2, 2}, numbers(8, 2));
  const auto refuses = [](const std::vector<NetworkOutput>& outputs, ErrorKind kind,
                          const std::string& text, const std::string& more = "") {
    return throws_error([&] { result_of(centers_task(more), outputs); }, kind, text);
  };
  EXPECT_TRUE(refuses({heat, output("s", {1, 2, 4, 4}, numbers(32, 2))}, ErrorKind::kMismatch,
                      "two maps of 2 rows and 2 columns"));
  EXPECT_TRUE(refuses({heat, output("s", {1, 2, 2, 2}, numbers(8, -2))}, ErrorKind::kModel,
                      "sides are negative"));
  EXPECT_TRUE(refuses({output("h", {1, 1, 2, 2}, numbers(4, 3)), sizes}, ErrorKind::kModel,
                      "expected 0 to 1"));
  EXPECT_TRUE(refuses({heat, sizes}, ErrorKind::kMismatch, "for each of 2 classes",
                      R"(, "labels": ["a", "b"])"));
  EXPECT_TRUE(
      throws_error([&] { parse_tasks(centers_task(R"(, "keypoints": {"count": 2})"), "t"); },
                   ErrorKind::kFormat, "has no meaning with the form centers"));
}

// Of ready boxes whose classes are numbers, the class and not the place of the score.
TEST(MapsAndImagesTest, TheBackgroundOfReadyBoxesIsANumber) {
  const auto result = std::get<DetectionResult>(
      result_of(R"({"kind": "detection", "form": "boxes", "boxes": "b", "scores": "s",
    "classes": "c", "box_format": "xyxy", "units": "pixels", "score_threshold": 0.5,
    "background": 0})",
                {output("b", {2, 4}, {0, 0, 1, 1, 1, 1, 2, 2}), output("c", {2}, {0, 1}),
                 output("s", {2}, {0.9F, 0.8F})}));
  ASSERT_EQ(result.detections.size(), 1U);
  EXPECT_EQ(result.detections[0].class_index, 1U);
}

}  // namespace
}  // namespace run_model
