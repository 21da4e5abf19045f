// Damaged descriptions and tensors that hold anything: a result or an Error, nothing else.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <run_model/error.h>
#include <run_model/postprocess.h>
#include "tests/postprocess/golden.h"

namespace run_model {
namespace {

// What a caller relies on, whatever the tensors hold.
void check_result(const TaskResult& result) {
  if (const auto* detections = std::get_if<DetectionResult>(&result)) {
    for (const Detection& found : detections->detections) {
      ASSERT_TRUE(found.score >= 0 && found.score <= 1);
      ASSERT_TRUE(std::isfinite(found.box.left) && std::isfinite(found.box.bottom));
      ASSERT_LE(found.box.left, found.box.right);
    }
  } else if (const auto* map = std::get_if<SegmentationResult>(&result)) {
    for (const std::uint8_t found : map->classes) {
      ASSERT_TRUE(found < map->class_count || found == SegmentationResult::kUnseen);
    }
    coco_run_lengths(*map);
  } else if (const auto* numbers = std::get_if<MapResult>(&result)) {
    for (const float value : numbers->values) ASSERT_FALSE(std::isinf(value));
    const MapStatistics found = map_statistics(*numbers, {0.25, 0.75});
    ASSERT_LE(found.least, found.most);
    ASSERT_LE(found.quantiles[0], found.quantiles[1]);
  } else if (const auto* image = std::get_if<ImageResult>(&result)) {
    const auto pixels =
        static_cast<std::size_t>(image->width) * static_cast<std::size_t>(image->height);
    ASSERT_EQ(image->pixels.size(), 3 * pixels);
    ASSERT_TRUE(image->seen.empty() || image->seen.size() == pixels);
    ASSERT_TRUE(image->cut_off >= 0 && image->cut_off <= 1);
  }
}

enum class Outcome { kResult, kRefused };

Outcome outcome(const std::string& task, const std::vector<NetworkOutput>& outputs,
                const PreprocessReport& picture) {
  try {
    for (const Task& each : parse_tasks(task, "task")) {
      check_result(postprocess(each, outputs, picture));
    }
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::kInternal) << error.what();
    EXPECT_LT(std::string(error.what()).size(), 1000U);
    return Outcome::kRefused;
  }
  return Outcome::kResult;
}

TEST(PostprocessCorruption, DescriptionsWithAByteOfAnother) {
  int results = 0, refused = 0;
  for (const nlohmann::json& item : golden()) {
    const std::string task = item.at("task").dump();
    const std::vector<NetworkOutput> outputs = outputs_of(item.at("outputs"));
    const PreprocessReport picture = picture_of(item.at("picture"));
    for (std::size_t i = 0; i < task.size(); ++i) {
      for (const char byte : {'9', '-', '"', ']'}) {
        std::string damaged = task;
        damaged[i] = byte;
        (outcome(damaged, outputs, picture) == Outcome::kResult ? results : refused) += 1;
      }
      EXPECT_EQ(outcome(task.substr(0, i), outputs, picture), Outcome::kRefused);
    }
  }
  EXPECT_GT(results, 100);
  EXPECT_GT(refused, results);
}

TEST(PostprocessCorruption, TensorsOfAnyNumbers) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::mt19937 random(18);  // NOLINT: the same numbers each time
  const std::vector<float> odd{0,     -1,     1,      1e4F,      -1e4F,
                               3e38F, -3e38F, 1e-40F, kInfinity, std::nanf("")};
  int results = 0;
  for (const nlohmann::json& item : golden()) {
    const std::string task = item.at("task").dump();
    const PreprocessReport picture = picture_of(item.at("picture"));
    for (int round = 0; round < 60; ++round) {
      const std::vector<NetworkOutput> outputs = outputs_of(item.at("outputs"));
      // Not always NaN and infinity, which are refused at once.
      const std::size_t kinds = round % 2 == 0 ? odd.size() : odd.size() - 4;
      for (const NetworkOutput& output : outputs) {
        const std::span<float> values = output.tensor.elements<float>();
        for (int i = 0; i < 8; ++i) values[random() % values.size()] = odd[random() % kinds];
      }
      if (outcome(task, outputs, picture) == Outcome::kResult) ++results;
    }
  }
  EXPECT_GT(results, 50);
}

TEST(PostprocessCorruption, TensorsOfOtherShapes) {
  for (const nlohmann::json& item : golden()) {
    const std::string task = item.at("task").dump();
    const PreprocessReport picture = picture_of(item.at("picture"));
    const std::vector<std::vector<std::int64_t>> shapes{
        {}, {0}, {1}, {1, 0, 0, 0}, {3, 5}, {1, 7, 2}, {1, 2, 0, 3}, {2, 3, 4, 5, 6}};
    for (const auto& shape : shapes) {
      std::vector<NetworkOutput> outputs = outputs_of(item.at("outputs"));
      for (NetworkOutput& output : outputs) {
        output.tensor = Tensor::empty(shape, DLDataType{kDLFloat, 32, 1});
        for (float& value : output.tensor.elements<float>()) value = 0.5F;
      }
      outcome(task, outputs, picture);
    }
  }
}

}  // namespace
}  // namespace run_model
