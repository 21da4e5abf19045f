#include "run_model/run_model/preprocessing_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

TensorInfo input_of(const std::vector<std::int64_t>& shape) {
  return {"data", shape, parse_dtype("float32")};
}

const TensorInfo kInput = input_of({1, 3, 224, 224});

Metadata caffe_metadata() {
  Metadata metadata;
  metadata.inputs.push_back({"data", {1, 3, 224, 224}, parse_dtype("float32"), "NCHW", 1.0, 0});
  metadata.preprocessing = {.resizer = Resizer::kCv2Linear,
                            .fit = Fit::kCrop,
                            .resize = 250,
                            .crop = 224,
                            .color_order = ColorOrder::kBgr,
                            .divide_by = 1.0F,
                            .mean = {104, 117, 123},
                            .std = {1, 2, 3}};
  return metadata;
}

PreprocessingFlags normalized(bool normalize) {
  PreprocessingFlags flags;
  flags.normalize = normalize;
  return flags;
}

Preprocessing choose(const PreprocessingFlags& flags, const Metadata* metadata = nullptr,
                     const TensorInfo& input = kInput) {
  return choose_preprocessing(flags, metadata, input).preprocessing;
}

TEST(PreprocessingChoiceTest, NothingIsGuessed) {
  EXPECT_TRUE(throws_error([] { choose({}); }, ErrorKind::kUsage, "give --normalize"));
  const Metadata without_section;
  EXPECT_TRUE(
      throws_error([&] { choose({}, &without_section); }, ErrorKind::kUsage, "give --normalize"));
  PreprocessingFlags flags;
  flags.mean = {1, 2, 3};
  EXPECT_TRUE(throws_error([&] { choose(flags); }, ErrorKind::kUsage, "give --normalize"));
}

TEST(PreprocessingChoiceTest, DefaultsWithoutMetadata) {
  const Preprocessing chosen = choose(normalized(true));
  EXPECT_EQ(chosen.resizer, Resizer::kPilBilinear);
  EXPECT_EQ(chosen.fit, Fit::kCrop);
  EXPECT_EQ(chosen.resize, 256);
  EXPECT_EQ(chosen.color_order, ColorOrder::kRgb);
  EXPECT_EQ(chosen.divide_by, 255.0F);
  EXPECT_TRUE(has_elements(chosen.mean, {0.485F, 0.456F, 0.406F}));
  EXPECT_TRUE(has_elements(chosen.std, {0.229F, 0.224F, 0.225F}));
}

TEST(PreprocessingChoiceTest, NoNormalizeKeepsPixels) {
  const Preprocessing chosen = choose(normalized(false));
  EXPECT_EQ(chosen.divide_by, 1.0F);
  EXPECT_TRUE(has_elements(chosen.mean, {0, 0, 0}));
  EXPECT_TRUE(has_elements(chosen.std, {1, 1, 1}));
}

TEST(PreprocessingChoiceTest, GivenMeanAndStdReplaceTheDefaults) {
  for (const bool normalize : {true, false}) {
    PreprocessingFlags flags = normalized(normalize);
    flags.mean = {0.1, 0.2, 0.3};
    flags.std = {4, 5, 6};
    const Preprocessing chosen = choose(flags);
    EXPECT_EQ(chosen.divide_by, normalize ? 255.0F : 1.0F);
    EXPECT_TRUE(has_elements(chosen.mean, {0.1F, 0.2F, 0.3F}));
    EXPECT_TRUE(has_elements(chosen.std, {4, 5, 6}));
  }
}

TEST(PreprocessingChoiceTest, MeanIsInNetworkOrder) {
  PreprocessingFlags flags = normalized(false);
  flags.color_order = "BGR";
  flags.mean = {104, 117, 123};
  EXPECT_TRUE(has_elements(choose(flags).mean, {104, 117, 123}));
  flags.mean_in_rgb_order = true;
  EXPECT_TRUE(has_elements(choose(flags).mean, {123, 117, 104}));
  flags.color_order = "RGB";
  EXPECT_TRUE(has_elements(choose(flags).mean, {104, 117, 123}));
}

TEST(PreprocessingChoiceTest, ImageNetsMeanFollowsItsColours) {
  PreprocessingFlags flags = normalized(true);
  flags.color_order = "BGR";
  EXPECT_TRUE(has_elements(choose(flags).mean, {0.406F, 0.456F, 0.485F}));
  EXPECT_TRUE(has_elements(choose(flags).std, {0.225F, 0.224F, 0.229F}));
}

TEST(PreprocessingChoiceTest, MetadataGivesEverything) {
  const Metadata metadata = caffe_metadata();
  const Preprocessing chosen = choose({}, &metadata);
  EXPECT_EQ(chosen.resizer, Resizer::kCv2Linear);
  EXPECT_EQ(chosen.resize, 250);
  EXPECT_EQ(chosen.color_order, ColorOrder::kBgr);
  EXPECT_EQ(chosen.divide_by, 1.0F);
  EXPECT_TRUE(has_elements(chosen.mean, {104, 117, 123}));
  EXPECT_TRUE(has_elements(chosen.std, {1, 2, 3}));
}

TEST(PreprocessingChoiceTest, FlagsComeBeforeMetadata) {
  const Metadata metadata = caffe_metadata();
  PreprocessingFlags flags;
  flags.resizer = "nearest";
  flags.resize = 240;
  flags.mean = {1, 2, 3};
  const Preprocessing chosen = choose(flags, &metadata);
  EXPECT_EQ(chosen.resizer, Resizer::kNearest);
  EXPECT_EQ(chosen.resize, 240);
  EXPECT_TRUE(has_elements(chosen.mean, {1, 2, 3}));
  EXPECT_TRUE(has_elements(chosen.std, {1, 2, 3}));

  const Preprocessing normalizing = choose(normalized(true), &metadata);
  EXPECT_EQ(normalizing.divide_by, 255.0F);
  EXPECT_TRUE(has_elements(normalizing.mean, {0.406F, 0.456F, 0.485F}));
}

TEST(PreprocessingChoiceTest, AnotherColourOrderTakesTheMetadatasMeanAlong) {
  const Metadata metadata = caffe_metadata();
  PreprocessingFlags flags;
  flags.color_order = "RGB";
  EXPECT_TRUE(has_elements(choose(flags, &metadata).mean, {123, 117, 104}));
  EXPECT_TRUE(has_elements(choose(flags, &metadata).std, {3, 2, 1}));
}

TEST(PreprocessingChoiceTest, LayoutFollowsTheShape) {
  const auto layout = [](const std::vector<std::int64_t>& shape, const std::string& flag = "") {
    PreprocessingFlags flags = normalized(true);
    flags.layout = flag;
    return choose_preprocessing(flags, nullptr, input_of(shape)).layout;
  };
  EXPECT_EQ(layout({1, 3, 224, 224}), Layout::kNchw);
  EXPECT_EQ(layout({1, 224, 224, 3}), Layout::kNhwc);
  EXPECT_EQ(layout({1, 3, 224, 3}, "NCHW"), Layout::kNchw);
  EXPECT_EQ(layout({3, 224, 224}), Layout::kChw);
  EXPECT_EQ(layout({224, 224, 3}), Layout::kHwc);
  // Sequences have such shapes too.
  for (const auto& shape : std::vector<std::vector<std::int64_t>>{{1, 128, 768}, {1, 224, 3}}) {
    EXPECT_TRUE(throws_error([&] { layout(shape); }, ErrorKind::kUsage, "--layout"));
  }
  EXPECT_TRUE(throws_error([&] { layout({8, 128, 768}); }, ErrorKind::kMismatch, "--inputs"));
  EXPECT_TRUE(throws_error([&] { layout({1, 3, 224, 3}); }, ErrorKind::kUsage, "--layout"));
  EXPECT_TRUE(throws_error([&] { layout({1, 4, 224, 224}); }, ErrorKind::kMismatch,
                           "'data' has the shape [1, 4, 224, 224]"));
  EXPECT_TRUE(throws_error([&] { layout({1, 1000}); }, ErrorKind::kMismatch, "--inputs"));
  EXPECT_TRUE(throws_error([&] { layout({2, 3, 224, 224}); }, ErrorKind::kMismatch, "[2, 3, 224"));
}

TEST(PreprocessingChoiceTest, OpenSidesAreWhatIsAskedFor) {
  TensorInfo input = input_of({1, 3, 224, 1});
  input.symbols = {"batch", "", "", ""};
  PreprocessingFlags flags = normalized(true);
  flags.layout = "NCHW";
  flags.fit = "squash";
  EXPECT_NO_THROW(choose(flags, nullptr, input));
  input.symbols.back() = "width";
  EXPECT_TRUE(throws_error([&] { choose(flags, nullptr, input); }, ErrorKind::kMismatch,
                           "'data' has any width"));
  flags.size = {320, 224};
  EXPECT_TRUE(has_elements(choose_preprocessing(flags, nullptr, input).shape, {1, 3, 224, 320}));
  const Metadata metadata = caffe_metadata();  // a short side of 250 and a crop of 224
  input.symbols = {"batch", "", "height", "width"};
  EXPECT_EQ(choose({.size = {{448, 336}}}, &metadata, input).resize, 500);
  EXPECT_EQ(choose({.size = {{448, 336}}}, &metadata, input).crop, 0);
  input.symbols = {"batch", "", "", "width"};
  flags.size = {320, 240};
  EXPECT_TRUE(throws_error([&] { choose(flags, nullptr, input); }, ErrorKind::kMismatch,
                           "a height of 240, and the model's input 'data' one of 224"));
}

TEST(PreprocessingChoiceTest, OneChannelIsGrey) {
  const TensorInfo gray = input_of({1, 1, 28, 28});
  EXPECT_EQ(choose(normalized(false), nullptr, gray).color_order, ColorOrder::kGray);
  PreprocessingFlags planes = normalized(false);
  planes.layout = "CHW";
  EXPECT_EQ(choose(planes, nullptr, input_of({1, 28, 28})).color_order, ColorOrder::kGray);
  PreprocessingFlags flags = normalized(false);
  flags.color_order = "BGR";
  EXPECT_TRUE(throws_error([&] { choose(flags, nullptr, gray); }, ErrorKind::kUsage, "grey"));
}

TEST(PreprocessingChoiceTest, CropMustBeTheInputsSize) {
  PreprocessingFlags flags = normalized(true);
  flags.crop = 200;
  EXPECT_TRUE(
      throws_error([&] { choose(flags); }, ErrorKind::kMismatch, "a crop of 200 does not give"));
  flags.crop = 224;
  flags.resize = 223;
  EXPECT_TRUE(throws_error([&] { choose(flags); }, ErrorKind::kUsage, "a short side of 223"));
  flags.resize = 224;
  EXPECT_EQ(choose(flags).resize, 224);
}

TEST(PreprocessingChoiceTest, OtherFitsHaveNoCrop) {
  PreprocessingFlags flags = normalized(true);
  flags.fit = "squash";
  EXPECT_EQ(choose(flags).fit, Fit::kSquash);
  flags.resize = 256;
  EXPECT_TRUE(throws_error([&] { choose(flags); }, ErrorKind::kUsage,
                           "--resize and --crop have no meaning with the fit squash"));
  const Metadata metadata = caffe_metadata();
  flags.resize.reset();
  EXPECT_EQ(choose(flags, &metadata).fit, Fit::kSquash);
}

TEST(PreprocessingChoiceTest, DeviationOfZeroIsRefused) {
  PreprocessingFlags flags = normalized(true);
  flags.std = {1, 0, 1};
  EXPECT_TRUE(throws_error([&] { choose(flags); }, ErrorKind::kUsage, "std"));
}

}  // namespace
}  // namespace run_model
