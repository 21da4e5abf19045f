#include "artifacts/references/golden_case.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include <run_model/npy.h>
#include "tests/has_elements.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using nlohmann::json;

const std::string kHash(64, 'a');

json complete_case() {
  return {{"schema_version", 1},
          {"model", "net"},
          {"onnx_sha256", kHash},
          {"picture", {{"file", "cat.png"}, {"sha256", std::string(64, 'b')}}},
          {"preprocessing",
           {{"resizer", "pil-bilinear"},
            {"fit", "crop"},
            {"resize", 4},
            {"crop", 4},
            {"color_order", "RGB"},
            {"divide_by", 1},
            {"mean", {0, 0, 0}},
            {"std", {1, 1, 1}}}},
          {"input",
           {{"name", "data"},
            {"shape", {1, 3, 4, 4}},
            {"dtype", "float32"},
            {"layout", "NCHW"},
            {"sha256", std::string(64, 'c')}}},
          {"output", {{"name", "scores"}, {"shape", {1, 3}}, {"kind", "logits"}}},
          {"top",
           {{{"index", 1}, {"label", "cat"}, {"probability", 0.9}},
            {{"index", 0}, {"label", "dog"}, {"probability", 0.1}}}}};
}

Tensor scores(const std::vector<float>& values) {
  Tensor tensor = Tensor::empty({1, static_cast<std::int64_t>(values.size())}, {kDLFloat, 32, 1});
  std::copy(values.begin(), values.end(), tensor.elements<float>().begin());
  return tensor;
}

class GoldenCaseTest : public ::testing::Test {
 protected:
  GoldenCase read(const json& document, const Tensor& output) const {
    const auto path = folder_.write("chelsea.json", document.dump());
    write_npy(folder_ / "chelsea.npy", output);
    return read_golden_case(path);
  }

  TemporaryFolder folder_;
};

TEST_F(GoldenCaseTest, ReadsEveryField) {
  const GoldenCase golden = read(complete_case(), scores({2, 3, 1}));
  EXPECT_EQ(golden.name, "chelsea");
  EXPECT_EQ(golden.model, "net");
  EXPECT_EQ(golden.source_sha256, kHash);
  EXPECT_EQ(golden.picture.file, "cat.png");
  EXPECT_EQ(golden.picture.sha256, std::string(64, 'b'));
  EXPECT_EQ(golden.preprocessing.crop, 4);
  EXPECT_EQ(golden.input.name, "data");
  EXPECT_TRUE(has_elements(golden.input.shape, {1, 3, 4, 4}));
  EXPECT_EQ(dtype_name(golden.input.dtype), "float32");
  EXPECT_EQ(golden.input.layout, Layout::kNchw);
  EXPECT_EQ(golden.input.sha256, std::string(64, 'c'));
  EXPECT_EQ(golden.kind, ScoreKind::kLogits);
  EXPECT_TRUE(has_elements(golden.output_shape, {1, 3}));
  EXPECT_TRUE(has_elements(golden.output.elements<float>(), {2, 3, 1}));
  ASSERT_EQ(golden.top.size(), 2U);
  EXPECT_EQ(golden.top[0].index, 1U);
  EXPECT_EQ(golden.top[0].label, "cat");
  EXPECT_EQ(golden.top[0].probability, 0.9);
}

TEST_F(GoldenCaseTest, RefusesWhatIsMalformed) {
  struct Case {
    std::string pointer;
    json value;
    std::string message;
  };
  const std::vector<Case> cases{
      {"/model", 1, "model is no string"},
      {"/onnx_sha256", "aa", "onnx_sha256 is not 64 lower-case"},
      {"/picture/file", "../cat.png", "expected a file's name without folders"},
      {"/picture/file", "..", "expected a file's name without folders"},
      {"/picture/file", "", "expected a file's name without folders"},
      {"/picture/sha256", std::string(64, 'A'), "picture.sha256 is not 64 lower-case"},
      {"/preprocessing/fit", "stretch", "preprocessing.fit"},
      {"/input/shape", {1, -3}, "input.shape[1]"},
      {"/input/dtype", "floot", "floot"},
      {"/input/layout", "CHWN", "it is one of NCHW, NHWC"},
      {"/output/kind", "odds", "it is one of logits, probabilities"},
      {"/output/shape", {2, 3}, "output is unusable"},
      {"/top", json::array(), "top has 0 classes"},
      {"/top/0/index", 3, "top[0].index is 3, expected 0 to 2"},
      {"/top/1/index", 1, "names a class for the second time"},
  };
  for (const auto& [pointer, value, message] : cases) {
    json document = complete_case();
    document[json::json_pointer(pointer)] = value;
    EXPECT_TRUE(
        throws_error([&] { read(document, scores({2, 3, 1})); }, ErrorKind::kFormat, message))
        << pointer;
  }
}

TEST_F(GoldenCaseTest, NothingMayBeMissing) {
  const json whole = complete_case();
  for (const auto& [key, value] : whole.items()) {
    json document = whole;
    document.erase(key);
    EXPECT_TRUE(throws_error([&] { read(document, scores({2, 3, 1})); }, ErrorKind::kFormat,
                             "has no member '" + key + "'"));
  }
}

TEST_F(GoldenCaseTest, TheArrayMustBeTheCases) {
  EXPECT_TRUE(throws_error([&] { read(complete_case(), scores({2, 3, 1, 0})); }, ErrorKind::kFormat,
                           "is float32 [1, 4], but"));
  EXPECT_TRUE(throws_error([&] { read(complete_case(), scores({4, 3, 1})); }, ErrorKind::kFormat,
                           "does not have the best classes"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(throws_error([&] { read(complete_case(), scores({2, 3, nan})); }, ErrorKind::kFormat,
                           "holds NaN or infinity at 2"));
  EXPECT_TRUE(throws_error([&] { read(complete_case(), Tensor::empty({1, 3}, {kDLInt, 32, 1})); },
                           ErrorKind::kFormat, "is int32 [1, 3], but"));
  const auto alone = folder_.write("alone.json", complete_case().dump());
  EXPECT_TRUE(throws_error([&] { read_golden_case(alone); }, ErrorKind::kFile, "alone.npy"));
}

TEST_F(GoldenCaseTest, RefusesAnotherVersion) {
  json newer = complete_case();
  newer["schema_version"] = 2;
  EXPECT_TRUE(throws_error([&] { read(newer, scores({2, 3, 1})); }, ErrorKind::kIncompatible,
                           "schema_version 2"));
}

// The cases that the project ships.
TEST(GoldenCasesTest, CanAllBeRead) {
  std::size_t count = 0;
  const auto folder = std::filesystem::path(RUN_MODEL_SOURCE_DIR) / "artifacts/golden";
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".json") continue;
    EXPECT_EQ(read_golden_case(file.path()).model, file.path().parent_path().filename());
    ++count;
  }
  EXPECT_GT(count, 0U);
}

json case_with_tasks() {
  json document = complete_case();
  for (const char* key : {"output", "top", "onnx_sha256"}) document.erase(key);
  document["schema_version"] = 2;
  document["tflite_sha256"] = kHash;
  document["tasks"] = {
      {{"kind", "detection"},
       {"form", "boxes"},
       {"boxes", 0},
       {"scores", 1},
       {"box_format", "xyxy"},
       {"units", "pixels"},
       {"score_threshold", 0.5}},
      {{"kind", "segmentation"}, {"output", 0}, {"form", "mask"}, {"activation", "none"}},
      {{"kind", "landmarks"},
       {"output", 0},
       {"columns", {"x", "y", "z", "visibility"}},
       {"units", "pixels"}}};
  document["results"] = {
      {{"kind", "detection"},
       {"detections",
        {{{"box", {1, 2, 3, 4.5}},
          {"class", 7},
          {"label", "cat"},
          {"score", 0.75},
          {"keypoints", {{1, 2}, {3, 4}}}}}}},
      // Of a mask of 2 x 3, the columns are 0 1 | 1 1 | 0 0.
      {{"kind", "segmentation"},
       {"width", 3},
       {"height", 2},
       {"classes",
        {{{"class", 0}, {"pixels", 3}, {"rle", {{"size", {2, 3}}, {"counts", "0131"}}}},
         {{"class", 1}, {"pixels", 3}, {"rle", {{"size", {2, 3}}, {"counts", "132"}}}}}}},
      {{"kind", "landmarks"},
       {"score", 0.25},
       {"present", false},
       {"points", {{1, 2, 3}, {4, 5, 6}}},
       {"point_scores", {{"visibility", {0.5, 1}}}}}};
  return document;
}

TEST_F(GoldenCaseTest, ReadsResultsOfTasks) {
  const auto path = folder_.write("alone.json", case_with_tasks().dump());
  const GoldenCase golden = read_golden_case(path);
  EXPECT_EQ(golden.source_sha256, kHash);
  ASSERT_EQ(golden.tasks.size(), 3U);
  ASSERT_EQ(golden.results.size(), 3U);
  const Detection& detection = std::get<DetectionResult>(golden.results[0]).detections.at(0);
  EXPECT_EQ(detection.box.bottom, 4.5);
  EXPECT_EQ(detection.class_index, 7U);
  EXPECT_EQ(detection.label, "cat");
  EXPECT_EQ(detection.score, 0.75);
  ASSERT_EQ(detection.keypoints.size(), 2U);
  EXPECT_EQ(detection.keypoints[1].x, 3);
  EXPECT_TRUE(
      has_elements(std::get<SegmentationResult>(golden.results[1]).classes, {0, 1, 0, 1, 1, 0}));
  const auto& landmarks = std::get<LandmarksResult>(golden.results[2]);
  EXPECT_EQ(landmarks.confidence, 0.25);
  EXPECT_FALSE(landmarks.present);
  EXPECT_EQ(landmarks.points.at(1).z, 6);
  EXPECT_EQ(landmarks.points.at(0).visibility, 0.5);
  EXPECT_FALSE(landmarks.points.at(0).presence.has_value());
}

json case_with_pixels() {
  json document = case_with_tasks();
  document["tasks"] = {{{"kind", "map"}, {"output", 0}, {"quantity", "depth"}},
                       {{"kind", "image"},
                        {"output", 0},
                        {"layout", "NCHW"},
                        {"color_order", "RGB"},
                        {"range", {0, 1}}},
                       {{"kind", "embedding"}, {"output", 0}}};
  document["results"] = {{{"kind", "map"}, {"width", 2}, {"height", 1}},
                         {{"kind", "image"}, {"width", 1}, {"height", 2}},
                         {{"kind", "embedding"}, {"values", {0.5, -2}}}};
  return document;
}

template <typename T>
Tensor array_of(const std::vector<std::int64_t>& shape, DLDataType type,
                const std::vector<T>& values) {
  Tensor tensor = Tensor::empty(shape, type);
  std::copy(values.begin(), values.end(), tensor.elements<T>().begin());
  return tensor;
}

constexpr DLDataType kFloat{kDLFloat, 32, 1}, kByte{kDLUInt, 8, 1};
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_F(GoldenCaseTest, ReadsThePixelsOfMapsAndImages) {
  const auto path = folder_.write("cat.json", case_with_pixels().dump());
  write_npy(folder_ / "cat.0.npy", array_of<float>({1, 2}, kFloat, {1.5F, kNan}));
  write_npy(folder_ / "cat.1.npy",
            array_of<std::uint8_t>({2, 1, 4}, kByte, {1, 2, 3, 255, 4, 5, 6, 0}));
  GoldenCase golden = read_golden_case(path);
  const auto& map = std::get<MapResult>(golden.results.at(0));
  EXPECT_EQ(map.values.at(0), 1.5F);
  EXPECT_TRUE(std::isnan(map.values.at(1)));
  EXPECT_TRUE(has_elements(std::get<ImageResult>(golden.results.at(1)).pixels, {1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(has_elements(std::get<ImageResult>(golden.results.at(1)).seen, {1, 0}));
  EXPECT_TRUE(has_elements(std::get<EmbeddingResult>(golden.results.at(2)).values, {0.5, -2.0}));

  write_npy(folder_ / "cat.1.npy", array_of<std::uint8_t>({2, 1, 3}, kByte, {1, 2, 3, 4, 5, 6}));
  golden = read_golden_case(path);
  EXPECT_TRUE(has_elements(std::get<ImageResult>(golden.results.at(1)).pixels, {1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(std::get<ImageResult>(golden.results.at(1)).seen.empty());
}

TEST_F(GoldenCaseTest, RefusesPixelsOfAnotherForm) {
  const auto path = folder_.write("cat.json", case_with_pixels().dump());
  const auto refused = [&](const std::string& message) {
    return throws_error([&] { read_golden_case(path); }, ErrorKind::kFormat, message);
  };
  EXPECT_TRUE(throws_error([&] { read_golden_case(path); }, ErrorKind::kFile, "cat.0.npy"));
  write_npy(folder_ / "cat.0.npy", array_of<float>({2, 1}, kFloat, {1, 2}));
  EXPECT_TRUE(refused("expected a map of float32"));
  write_npy(folder_ / "cat.0.npy",
            array_of<float>({1, 2}, kFloat, {1, std::numeric_limits<float>::infinity()}));
  EXPECT_TRUE(refused("holds infinity"));
  write_npy(folder_ / "cat.0.npy", array_of<float>({1, 2}, kFloat, {1, 2}));
  write_npy(folder_ / "cat.1.npy", array_of<std::uint8_t>({2, 1, 2}, kByte, {1, 2, 3, 4}));
  EXPECT_TRUE(refused("expected a picture of uint8"));
}

TEST_F(GoldenCaseTest, RefusesMalformedResults) {
  struct Case {
    std::string pointer;
    json value;
    std::string message;
  };
  const std::vector<Case> cases{
      {"/results", json::array(), "results has 0 results of 3 tasks"},
      {"/results/0/kind", "landmarks", "is not the task's, detection"},
      {"/results/0/detections/0/box", {1, 2, 3}, "box has not four numbers"},
      {"/results/0/detections/0/score", 1.5, "score is not from 0 to 1"},
      {"/results/0/detections/0/keypoints/0", {1}, "is no point"},
      {"/results/1/width", 4, "is not the mask's height and width"},
      {"/results/1/classes/0/rle/counts", "013", "has fewer pixels"},
      {"/results/1/classes/0/rle/counts", "01329", "has more pixels"},
      {"/results/1/classes/0/rle/counts", "06", "covers a pixel of another class"},
      {"/results/1/classes/0/rle/counts", "0P", "is no compressed run lengths"},
      {"/results/1/classes/0/rle/counts", "oooooooo", "is no compressed run lengths"},
      {"/results/1/classes/1/class", 255, "expected 0 to 254"},
      {"/results/2/points/0", {1, 2, 3, 4}, "is no point"},
      {"/results/2/point_scores/visibility", {0.5}, "has not one number for each point"},
      {"/results/2/point_scores", {{"sight", {1, 1}}}, "sight"},
      {"/tasks/0/form", "box", "tasks[0].form"},
      {"/schema_version", 1, "has schema_version 1"},
  };
  for (const auto& [pointer, value, message] : cases) {
    json document = case_with_tasks();
    document[json::json_pointer(pointer)] = value;
    const ErrorKind kind =
        pointer == "/schema_version" ? ErrorKind::kIncompatible : ErrorKind::kFormat;
    EXPECT_TRUE(throws_error([&] { parse_golden_case(document.dump(), "'case'"); }, kind, message))
        << pointer << " " << value;
  }
}

}  // namespace
}  // namespace run_model
