#include <run_model/metadata.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include <run_model/dtype.h>
#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using nlohmann::json;

json complete_metadata() {
  return json::parse(R"({
    "schema_version": 1, "model": "net",
    "target": {"name": "native", "tvm": "llvm -mcpu=znver3", "machine": "x86_64",
               "features": ["avx2", "fma"]},
    "tvm_version": "0.18.0",
    "inputs": [{"name": "data", "shape": [1, 3, 224, 224], "dtype": "float32", "layout": "NCHW"}],
    "outputs": [{"name": "prob", "shape": [1, 1000], "dtype": "int8", "scale": 0.5,
                 "zero_point": -3}],
    "preprocessing": {"resizer": "pil-bilinear", "fit": "crop", "resize": 256, "crop": 224,
                      "color_order": "BGR", "divide_by": 1.0, "mean": [104, 117, 123.5],
                      "std": [1, 1, 2]},
    "tasks": [{"kind": "embedding", "output": "prob"}],
    "source": {"onnx_sha256":
      "9a4410c05a6fa5dcb7fd1fcaa0bcb3a675a0c3f5e7720c84b98a177ba069ed95"},
    "files": {"model.so": {"bytes": 7, "xxh3_64": "00000000000000ff"}}})");
}

Metadata parse(const json& document) { return parse_metadata(document.dump(), "'metadata.json'"); }

TEST(MetadataTest, ReadsEveryField) {
  const Metadata metadata = parse(complete_metadata());
  EXPECT_EQ(metadata.model, "net");
  EXPECT_EQ(metadata.target_name, "native");
  EXPECT_EQ(metadata.target, "llvm -mcpu=znver3");
  EXPECT_EQ(metadata.machine, "x86_64");
  ASSERT_TRUE(metadata.features.has_value());
  EXPECT_TRUE(has_elements(*metadata.features, {"avx2", "fma"}));
  EXPECT_EQ(metadata.tvm_version, "0.18.0");
  EXPECT_THAT(metadata.source_sha256, ::testing::StartsWith("9a4410c0"));
  ASSERT_EQ(metadata.inputs.size(), 1U);
  EXPECT_EQ(metadata.inputs[0].name, "data");
  EXPECT_TRUE(has_elements(metadata.inputs[0].shape, {1, 3, 224, 224}));
  EXPECT_EQ(dtype_name(metadata.inputs[0].dtype), "float32");
  EXPECT_EQ(metadata.inputs[0].layout, "NCHW");
  ASSERT_EQ(metadata.outputs.size(), 1U);
  EXPECT_EQ(metadata.outputs[0].scale, 0.5);
  EXPECT_EQ(metadata.outputs[0].zero_point, -3);
  ASSERT_TRUE(metadata.preprocessing.has_value());
  EXPECT_EQ(metadata.preprocessing->resizer, Resizer::kPilBilinear);
  EXPECT_EQ(metadata.preprocessing->fit, Fit::kCrop);
  EXPECT_EQ(metadata.preprocessing->resize, 256);
  EXPECT_EQ(metadata.preprocessing->crop, 224);
  EXPECT_EQ(metadata.preprocessing->color_order, ColorOrder::kBgr);
  EXPECT_EQ(metadata.preprocessing->divide_by, 1.0);
  EXPECT_TRUE(has_elements(metadata.preprocessing->mean, {104, 117, 123.5}));
  EXPECT_TRUE(has_elements(metadata.preprocessing->std, {1, 1, 2}));
  ASSERT_EQ(metadata.files.count("model.so"), 1U);
  EXPECT_EQ(metadata.files.at("model.so").bytes, 7U);
  EXPECT_EQ(metadata.files.at("model.so").xxh3_64, 255U);
}

TEST(MetadataTest, ReadsTasks) {
  const Metadata metadata = parse(complete_metadata());
  ASSERT_EQ(metadata.tasks.size(), 1U);
  EXPECT_EQ(metadata.tasks[0].kind(), TaskKind::kEmbedding);
  json unknown = complete_metadata();
  unknown["tasks"][0]["normalise"] = true;
  EXPECT_TRUE(throws_error([&] { parse(unknown); }, ErrorKind::kFormat,
                           "tasks[0].normalise is not a field"));
}

TEST(MetadataTest, OnlyTheSchemaIsRequired) {
  const Metadata metadata = parse({{"schema_version", 1}, {"preprocessing", nullptr}});
  EXPECT_EQ(metadata.model, "");
  EXPECT_FALSE(metadata.preprocessing.has_value());
  EXPECT_TRUE(metadata.files.empty());
}

TEST(MetadataTest, RefusesOtherSchemas) {
  EXPECT_TRUE(throws_error([] { parse(json::object()); }, ErrorKind::kFormat,
                           "no member 'schema_version'"));
  EXPECT_TRUE(throws_error([] { parse({{"schema_version", 2}}); }, ErrorKind::kIncompatible,
                           "schema_version 2, and this program knows 1"));
  EXPECT_TRUE(throws_error([] { parse({{"schema_version", "1"}}); }, ErrorKind::kFormat, "schema"));
}

TEST(MetadataTest, RefusesWhatIsNoJson) {
  for (const char* text : {"", "{", "[]", "nonsense", "{\"schema_version\": 1e999}"}) {
    EXPECT_TRUE(throws_error([&] { parse_metadata(text, "'metadata.json'"); }, ErrorKind::kFormat,
                             "'metadata.json'"))
        << text;
  }
}

// Each row changes one value, named by its JSON pointer, and must be refused with that message.
TEST(MetadataTest, RefusesWrongValues) {
  const std::vector<std::tuple<std::string, json, std::string>> cases{
      {"/model", 1, "model"},
      {"/inputs", 1, "inputs"},
      {"/target/features", "avx2", "target.features"},
      {"/target/features/1", 2, "target.features[1]"},
      {"/inputs/0/shape", "x", "inputs[0].shape"},
      {"/inputs/0/shape/0", -2, "inputs[0].shape[0]"},
      {"/inputs/0/shape", {4294967296, 4294967296}, "inputs[0]"},
      {"/inputs/0/shape", json(std::vector<int>(33, 1)), "too many dimensions"},
      {"/inputs/0/dtype", "floot", "floot"},
      {"/inputs/0/layout", "CHWN", "it is one of NCHW, NHWC"},
      {"/outputs/0/scale", 0, "outputs[0].scale"},
      {"/preprocessing/resizer", "lanczos", "it is one of nearest, pil-bilinear"},
      {"/preprocessing/fit", 3, "preprocessing.fit"},
      {"/preprocessing/resize", 0, "preprocessing.resize"},
      {"/preprocessing/crop", 257, "preprocessing.crop"},
      {"/preprocessing/crop", 224.5, "preprocessing.crop"},
      {"/preprocessing/color_order", "RBG", "preprocessing.color_order"},
      {"/preprocessing/divide_by", 0, "preprocessing.divide_by"},
      {"/preprocessing/mean", {1, 2}, "preprocessing.mean has 2 values"},
      {"/preprocessing/mean/1", nullptr, "preprocessing.mean[1]"},
      {"/preprocessing/std/2", 0, "preprocessing.std[2]"},
      {"/preprocessing/pad", 256, "preprocessing.pad"},
      {"/preprocessing/colour_order", "RGB", "not a field that this version knows"},
      {"/files/model.so/bytes", -1, "files.model.so.bytes"},
      {"/files/model.so/xxh3_64", "FF", "16 lower-case"},
      {"/files/model.so/sha256", "ff", "64 lower-case"},
      {"/source/onnx_sha256", "…", "source.onnx_sha256 is not 64 lower-case"},
  };
  for (const auto& [pointer, value, message] : cases) {
    json document = complete_metadata();
    document[json::json_pointer(pointer)] = value;
    EXPECT_TRUE(throws_error([&] { parse(document); }, ErrorKind::kFormat, message)) << pointer;
  }
}

TEST(MetadataTest, NothingOfThePreprocessingMayBeMissing) {
  for (const char* key :
       {"resizer", "fit", "resize", "crop", "color_order", "divide_by", "mean", "std"}) {
    json document = complete_metadata();
    document["preprocessing"].erase(key);
    EXPECT_TRUE(throws_error([&] { parse(document); }, ErrorKind::kFormat,
                             "has no member '" + std::string(key) + "'"));
  }
  json squash = complete_metadata();
  squash["preprocessing"]["fit"] = "squash";
  squash["preprocessing"].erase("resize");
  squash["preprocessing"].erase("crop");
  EXPECT_NO_THROW(parse(squash));
}

TEST(MetadataTest, DeepNestingIsRefusedWithoutHarm) {
  const std::string deep(200'000, '[');
  EXPECT_TRUE(throws_error(
      [&] {
        parse_metadata("{\"schema_version\": " + deep + std::string(200'000, ']') + "}", "'m'");
      },
      ErrorKind::kFormat, "'m'"));
}

TEST(MetadataTest, EveryTruncationIsRefused) {
  const std::string text = complete_metadata().dump();
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_TRUE(throws_error([&] { parse_metadata(text.substr(0, length), "'m'"); },
                             ErrorKind::kFormat, "'m'"))
        << length;
  }
}

}  // namespace
}  // namespace run_model
