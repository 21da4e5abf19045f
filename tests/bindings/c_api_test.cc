#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <run_model/c_api.h>
#include <algorithm>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/run_model/picture_artifact.h"

extern "C" int best_class_in_c(const char* artifacts, const float* channels);

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

class CApiTest : public ::testing::Test {
 protected:
  CApiTest() { artifact_.write_metadata(PictureArtifact::metadata()); }
  ~CApiTest() override { run_model_close(model_); }

  std::string folder() const { return artifact_.folder().path().string(); }

  int open(const run_model_options* options = nullptr, const char* name = "net") {
    return run_model_open(name, folder().c_str(), options, &model_);
  }

  std::string error() const { return run_model_last_error(); }

  int set(const std::vector<std::int64_t>& shape, void* data, DLDataType dtype = {kDLFloat, 32, 1},
          std::size_t index = 0, std::int64_t* strides = nullptr) {
    std::vector<std::int64_t> extents = shape;
    const DLTensor tensor{
        data, {kDLCPU, 0}, static_cast<int>(shape.size()), dtype, extents.data(), strides, 0};
    return run_model_set_input(model_, index, &tensor);
  }

  std::vector<float> scores() {
    DLTensor view{};
    EXPECT_EQ(run_model_output(model_, 0, &view), RUN_MODEL_OK) << error();
    const auto* first = static_cast<const float*>(view.data);
    return {first, first + view.shape[1]};
  }

  json results(std::size_t classes = 5) {
    const char* text = nullptr;
    EXPECT_EQ(run_model_results(model_, classes, &text), RUN_MODEL_OK) << error();
    return json::parse(text == nullptr ? "null" : text);
  }

  PictureArtifact artifact_;
  run_model_model* model_ = nullptr;
};

TEST_F(CApiTest, IsC) {
  const std::vector<float> channels{0.5F, 2.0F, 1.0F};
  EXPECT_EQ(best_class_in_c(folder().c_str(), channels.data()), 1);
  EXPECT_EQ(best_class_in_c("/nowhere", channels.data()), -1);
}

TEST_F(CApiTest, SaysWhatInputsAndOutputsAre) {
  ASSERT_EQ(open(), RUN_MODEL_OK) << error();
  std::size_t inputs = 0, outputs = 0;
  ASSERT_EQ(run_model_input_count(model_, &inputs), RUN_MODEL_OK);
  ASSERT_EQ(run_model_output_count(model_, &outputs), RUN_MODEL_OK);
  EXPECT_EQ(inputs, 1U);
  EXPECT_EQ(outputs, 1U);
  run_model_tensor_info info{};
  ASSERT_EQ(run_model_input_info(model_, 0, &info), RUN_MODEL_OK);
  EXPECT_STREQ(info.name, "data");
  EXPECT_THAT(std::vector<std::int64_t>(info.shape, info.shape + info.ndim),
              ElementsAre(1, 3, 4, 4));
  EXPECT_EQ(info.dtype.code, kDLFloat);
  EXPECT_EQ(info.dtype.bits, 32);
  run_model_tensor_info output{};
  ASSERT_EQ(run_model_output_info(model_, 0, &output), RUN_MODEL_OK);
  EXPECT_STREQ(output.name, "scores");  // of the metadata; the graph has none
  EXPECT_STREQ(info.name, "data");      // still
  EXPECT_EQ(run_model_input_info(model_, 1, &info), RUN_MODEL_USAGE);
  EXPECT_THAT(error(), HasSubstr("no input 1: the model has 1"));
}

TEST_F(CApiTest, TensorsInTensorsOut) {
  ASSERT_EQ(open(), RUN_MODEL_OK) << error();
  EXPECT_EQ(run_model_run(model_), RUN_MODEL_MISMATCH);
  EXPECT_THAT(error(), HasSubstr("data"));
  std::vector<float> numbers(48, 0.25F);
  ASSERT_EQ(set({1, 3, 4, 4}, numbers.data()), RUN_MODEL_OK) << error();
  ASSERT_EQ(run_model_run(model_), RUN_MODEL_OK) << error();
  EXPECT_THAT(scores(), ElementsAre(4, 4, 4));
}

TEST_F(CApiTest, OtherTensorsAreRefused) {
  ASSERT_EQ(open(), RUN_MODEL_OK) << error();
  std::vector<float> numbers(48);
  EXPECT_EQ(set({1, 3, 16}, numbers.data()), RUN_MODEL_MISMATCH);
  EXPECT_EQ(set({1, 3, 4, 4}, numbers.data(), {kDLInt, 32, 1}), RUN_MODEL_MISMATCH);
  EXPECT_EQ(set({1, 3, 4, 4}, nullptr), RUN_MODEL_USAGE);
  EXPECT_EQ(set({1, 3, 4, 4}, numbers.data(), {kDLFloat, 32, 1}, 7), RUN_MODEL_USAGE);
  std::vector<std::int64_t> transposed{48, 1, 3, 12};
  EXPECT_EQ(set({1, 3, 4, 4}, numbers.data(), {kDLFloat, 32, 1}, 0, transposed.data()),
            RUN_MODEL_MISMATCH);
  EXPECT_EQ(run_model_set_input(model_, 0, nullptr), RUN_MODEL_USAGE);
  DLTensor shapeless{numbers.data(), {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, nullptr, nullptr, 0};
  EXPECT_EQ(run_model_set_input(model_, 0, &shapeless), RUN_MODEL_USAGE);
}

struct Given {
  explicit Given(std::size_t numbers, DLDataType dtype = {kDLFloat, 32, 1}) : memory(numbers + 32) {
    auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    first = memory.data() + (128 - address % 128) % 128 / sizeof(float);
    tensor.dl_tensor = {first, {kDLCPU, 0}, 4, dtype, shape.data(), nullptr, 0};
    tensor.manager_ctx = this;
    tensor.deleter = [](DLManagedTensor* given) {
      ++static_cast<Given*>(given->manager_ctx)->deleted;
    };
  }

  std::vector<float> memory;
  std::vector<std::int64_t> shape{1, 3, 4, 4};
  float* first;
  DLManagedTensor tensor{};
  int deleted = 0;
};

TEST_F(CApiTest, InputsThatAreShared) {
  ASSERT_EQ(open(), RUN_MODEL_OK) << error();
  Given given(48), other(48);
  std::fill_n(given.first, 48, 0.25F);
  ASSERT_EQ(run_model_share_input(model_, 0, &given.tensor), RUN_MODEL_OK) << error();
  ASSERT_EQ(run_model_run(model_), RUN_MODEL_OK) << error();
  EXPECT_THAT(scores(), ElementsAre(4, 4, 4));
  given.first[0] += 1;  // which the model sees
  ASSERT_EQ(run_model_run(model_), RUN_MODEL_OK);
  EXPECT_THAT(scores(), ElementsAre(5, 4, 4));
  Given wrong(48, {kDLInt, 32, 1}), unaligned(48);
  unaligned.tensor.dl_tensor.byte_offset = 4;
  EXPECT_EQ(run_model_share_input(model_, 0, &wrong.tensor), RUN_MODEL_MISMATCH);
  EXPECT_EQ(run_model_share_input(model_, 0, &unaligned.tensor), RUN_MODEL_MISMATCH);
  EXPECT_THAT(error(), HasSubstr("128 bytes"));
  EXPECT_EQ(run_model_share_input(model_, 0, nullptr), RUN_MODEL_USAGE);
  EXPECT_EQ(wrong.deleted + unaligned.deleted + given.deleted, 0);
  ASSERT_EQ(run_model_run(model_), RUN_MODEL_OK);
  EXPECT_THAT(scores(), ElementsAre(5, 4, 4));  // what was refused changed nothing
  ASSERT_EQ(run_model_share_input(model_, 0, &other.tensor), RUN_MODEL_OK);
  EXPECT_EQ(given.deleted, 1);
  std::vector<float> copied(48, 0.5F);
  ASSERT_EQ(set({1, 3, 4, 4}, copied.data()), RUN_MODEL_OK);
  EXPECT_EQ(other.deleted, 1);
  EXPECT_EQ(other.first[0], 0.0F);  // not written to
  Given last(48);
  ASSERT_EQ(run_model_share_input(model_, 0, &last.tensor), RUN_MODEL_OK);
  run_model_close(model_);
  model_ = nullptr;
  EXPECT_EQ(last.deleted, 1);
}

TEST_F(CApiTest, OutputsThatAreSharedStay) {
  ASSERT_EQ(open(), RUN_MODEL_OK) << error();
  std::vector<float> numbers(48, 0.25F);
  ASSERT_EQ(set({1, 3, 4, 4}, numbers.data()), RUN_MODEL_OK);
  ASSERT_EQ(run_model_run(model_), RUN_MODEL_OK);
  DLManagedTensor* shared = nullptr;
  ASSERT_EQ(run_model_share_output(model_, 0, &shared), RUN_MODEL_OK) << error();
  DLTensor view{};
  ASSERT_EQ(run_model_output(model_, 0, &view), RUN_MODEL_OK);
  EXPECT_EQ(shared->dl_tensor.data, view.data);
  EXPECT_EQ(run_model_share_output(model_, 0, nullptr), RUN_MODEL_USAGE);
  DLManagedTensor* none = shared;
  EXPECT_EQ(run_model_share_output(model_, 1, &none), RUN_MODEL_USAGE);
  EXPECT_EQ(none, nullptr);
  run_model_close(model_);
  model_ = nullptr;
  const auto* first = static_cast<const float*>(shared->dl_tensor.data);
  EXPECT_THAT(std::vector<float>(first, first + 3), ElementsAre(4, 4, 4));
  shared->deleter(shared);
}

TEST_F(CApiTest, APictureBecomesAnInputAndResults) {
  run_model_options options{};
  const std::string labels = artifact_.path("labels.txt");
  options.labels = labels.c_str();
  options.threads = 1;
  ASSERT_EQ(open(&options), RUN_MODEL_OK) << error();
  const char* text = nullptr;
  EXPECT_EQ(run_model_results(model_, 1, &text), RUN_MODEL_USAGE);
  ASSERT_EQ(run_model_set_picture(model_, 0, artifact_.path("red.ppm").c_str(), 0, 0), RUN_MODEL_OK)
      << error();
  EXPECT_EQ(run_model_results(model_, 1, &text), RUN_MODEL_USAGE);  // of no run yet
  ASSERT_EQ(run_model_run(model_), RUN_MODEL_OK) << error();
  // The network sees blue, green, red; 16 pixels of each over 1600.
  const std::vector<float> of_file = scores();
  EXPECT_THAT(of_file,
              ElementsAre(FloatNear(0.2F, 1e-6F), FloatNear(0.1F, 1e-6F), FloatNear(2.0F, 1e-6F)));
  const json found = results(2);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].at("kind"), "classification");
  ASSERT_EQ(found[0].at("top").size(), 2U);
  EXPECT_EQ(found[0].at("top")[0].at("index"), 2);
  EXPECT_EQ(found[0].at("top")[0].at("label"), "blue things");

  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < 48; ++i) pixels.insert(pixels.end(), {200, 10, 20});
  ASSERT_EQ(run_model_set_pixels(model_, 0, pixels.data(), 8, 6, 4, 4), RUN_MODEL_OK) << error();
  ASSERT_EQ(run_model_run(model_), RUN_MODEL_OK);
  EXPECT_EQ(scores(), of_file);
  EXPECT_EQ(run_model_set_pixels(model_, 0, pixels.data(), 8, 6, 5, 4), RUN_MODEL_MISMATCH);
  EXPECT_THAT(error(), HasSubstr("width of 5"));
  EXPECT_EQ(run_model_set_pixels(model_, 0, pixels.data(), 0, 6, 0, 0), RUN_MODEL_IMAGE);
  EXPECT_EQ(run_model_set_picture(model_, 0, artifact_.path("labels.txt").c_str(), 0, 0),
            RUN_MODEL_IMAGE);
}

TEST_F(CApiTest, TasksOfTheArtifactReadTheOutputs) {
  json metadata = PictureArtifact::metadata();
  metadata["tasks"] = json::array(
      {{{"kind", "embedding"}, {"output", 0}},
       {{"kind", "classification"}, {"output", "scores"}, {"labels", {"blue", "green", "red"}}}});
  artifact_.write_metadata(metadata);
  ASSERT_EQ(open(), RUN_MODEL_OK) << error();
  ASSERT_EQ(run_model_set_picture(model_, 0, artifact_.path("red.ppm").c_str(), 0, 0),
            RUN_MODEL_OK);
  ASSERT_EQ(run_model_run(model_), RUN_MODEL_OK);
  const json found = results();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].at("values").size(), 3U);
  EXPECT_EQ(found[1].at("top")[0].at("label"), "red");
}

TEST_F(CApiTest, ARegionIsSeenInPlaceOfThePicture) {
  artifact_.folder().write("embedding.json", R"({"kind": "embedding", "output": 0})");
  run_model_options options{};
  const std::string tasks = artifact_.path("embedding.json");
  options.tasks = tasks.c_str();
  ASSERT_EQ(open(&options), RUN_MODEL_OK) << error();
  std::uint8_t* pixels = nullptr;
  int width = 0, height = 0;
  ASSERT_EQ(run_model_load_pixels(artifact_.path("red.ppm").c_str(), &pixels, &width, &height),
            RUN_MODEL_OK);
  ASSERT_EQ(width, PictureArtifact::kWidth);
  ASSERT_EQ(height, PictureArtifact::kHeight);
  EXPECT_EQ(pixels[2], 20);
  for (int i = 0; i < 3 * width; ++i) pixels[i] = 0;  // the row at the top
  const run_model_region part{2, 0, 4, 4, 0};
  ASSERT_EQ(run_model_set_region(model_, &part), RUN_MODEL_OK);
  ASSERT_EQ(run_model_set_pixels(model_, 0, pixels, width, height, 0, 0), RUN_MODEL_OK) << error();
  run_model_free_pixels(pixels);
  ASSERT_EQ(run_model_run(model_), RUN_MODEL_OK);
  // Three of the region's four rows are red.
  EXPECT_THAT(scores(), ElementsAre(FloatNear(0.15F, 1e-6F), FloatNear(0.075F, 1e-6F),
                                    FloatNear(1.5F, 1e-6F)));
  EXPECT_EQ(results().at(0).at("kind"), "embedding");
  const char* regions = nullptr;
  EXPECT_EQ(run_model_regions(model_, model_, &regions), RUN_MODEL_USAGE);
  EXPECT_THAT(error(), HasSubstr("finds no boxes"));
  const run_model_region beyond{20, 0, 4, 4, 0};
  ASSERT_EQ(run_model_set_region(model_, &beyond), RUN_MODEL_OK);
  EXPECT_EQ(run_model_set_picture(model_, 0, artifact_.path("red.ppm").c_str(), 0, 0),
            RUN_MODEL_USAGE);
  ASSERT_EQ(run_model_set_region(model_, nullptr), RUN_MODEL_OK);
  EXPECT_EQ(run_model_set_picture(model_, 0, artifact_.path("red.ppm").c_str(), 0, 0),
            RUN_MODEL_OK);
}

TEST_F(CApiTest, WithoutMetadataPicturesAreRefused) {
  std::filesystem::remove(artifact_.path("net_tvm.metadata.json"));
  ASSERT_EQ(open(), RUN_MODEL_OK) << error();
  EXPECT_EQ(run_model_set_picture(model_, 0, artifact_.path("red.ppm").c_str(), 0, 0),
            RUN_MODEL_MISMATCH);
  EXPECT_THAT(error(), HasSubstr("--preprocessing"));
}

TEST_F(CApiTest, MetadataOfAnotherModelIsRefused) {
  json metadata = PictureArtifact::metadata();
  metadata["inputs"][0]["name"] = "picture";
  artifact_.write_metadata(metadata);
  EXPECT_EQ(open(), RUN_MODEL_MISMATCH);
  EXPECT_THAT(error(), HasSubstr("another artifact"));
  EXPECT_EQ(model_, nullptr);
}

TEST_F(CApiTest, FailuresHaveTheProgramsCodes) {
  EXPECT_EQ(run_model_open("net", "/nowhere", nullptr, &model_), RUN_MODEL_FILE);
  EXPECT_EQ(run_model_open("net", nullptr, nullptr, &model_), RUN_MODEL_USAGE);
  EXPECT_EQ(run_model_open("net", folder().c_str(), nullptr, nullptr), RUN_MODEL_USAGE);
  EXPECT_EQ(run_model_run(nullptr), RUN_MODEL_USAGE);
  run_model_options elsewhere{};
  elsewhere.device = "opencl:x";
  EXPECT_EQ(open(&elsewhere), RUN_MODEL_USAGE);
  EXPECT_THAT(error(), HasSubstr("opencl:x"));
  artifact_.call("fused_failure");
  ASSERT_EQ(open(), RUN_MODEL_OK) << error();
  std::vector<float> numbers(48);
  ASSERT_EQ(set({1, 3, 4, 4}, numbers.data()), RUN_MODEL_OK);
  EXPECT_EQ(run_model_run(model_), RUN_MODEL_FAILED);
  EXPECT_THAT(error(), HasSubstr("does not like this picture"));
  const std::string here = error();
  std::thread other([] { EXPECT_STREQ(run_model_last_error(), ""); });
  other.join();
  EXPECT_EQ(error(), here);
}

}  // namespace
}  // namespace run_model
