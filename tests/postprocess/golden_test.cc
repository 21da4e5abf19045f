// The results of torchvision and of NumPy on the same tensors (make_golden.py).
#include <run_model/postprocess.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace run_model {
namespace {

using nlohmann::json;

const json& golden() {
  static const json cases = json::parse(
      std::ifstream(std::string(RUN_MODEL_SOURCE_DIR) + "/tests/postprocess/data/golden.json"));
  return cases.at("cases");
}

PreprocessReport picture_of(const json& field) {
  PreprocessReport picture;
  picture.original_width = field.at("width");
  picture.original_height = field.at("height");
  picture.input_width = field.at("input_width");
  picture.input_height = field.at("input_height");
  picture.scale_x = field.at("scale_x");
  picture.scale_y = field.at("scale_y");
  picture.offset_x = field.at("offset_x");
  picture.offset_y = field.at("offset_y");
  return picture;
}

// The file keeps them in the order of their names, and tasks ask by name or number.
std::vector<NetworkOutput> outputs_of(const json& field) {
  std::vector<NetworkOutput> outputs;
  for (const auto& [name, value] : field.items()) {
    NetworkOutput output;
    output.name = name;
    output.tensor = Tensor::empty(value.at("shape").get<std::vector<std::int64_t>>(),
                                  DLDataType{kDLFloat, 32, 1});
    const auto data = value.at("data").get<std::vector<float>>();
    std::copy(data.begin(), data.end(), output.tensor.elements<float>().begin());
    outputs.push_back(std::move(output));
  }
  return outputs;
}

bool same(const Detection& found, const json& expected) {
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
  return found.class_index == expected.at("class").get<std::size_t>() &&
         std::abs(found.score - expected.at("score").get<double>()) <= kScore;
}

void compare_detections(const DetectionResult& result, const json& expected) {
  ASSERT_EQ(result.detections.size(), expected.size());
  for (std::size_t i = 1; i < result.detections.size(); ++i) {
    EXPECT_GE(result.detections[i - 1].score, result.detections[i].score);
  }
  // Others may put equal scores into another order.
  for (const json& item : expected) {
    EXPECT_TRUE(std::any_of(result.detections.begin(), result.detections.end(),
                            [&](const Detection& found) { return same(found, item); }))
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

TEST(PostprocessGoldenTest, ResultsAreThoseOfOthers) {
  ASSERT_GT(golden().size(), 10U);
  for (const json& item : golden()) {
    SCOPED_TRACE(item.at("name").get<std::string>());
    const Task task = parse_tasks(item.at("task").dump(), "golden.json").at(0);
    const std::vector<NetworkOutput> outputs = outputs_of(item.at("outputs"));
    const TaskResult result = postprocess(task, outputs, picture_of(item.at("picture")));
    if (const auto* detections = std::get_if<DetectionResult>(&result)) {
      compare_detections(*detections, item.at("expected"));
    } else {
      compare_masks(std::get<SegmentationResult>(result), item.at("expected"));
    }
  }
}

}  // namespace
}  // namespace run_model
