#include "run_model/run_model/settings.h"

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run_model/shared/arguments.h"
#include "tests/error_matcher.h"

namespace run_model {
namespace {

using ::testing::ElementsAre;
using Strings = std::vector<std::string>;

const Strings kPicture{"net", "dir", "cat.png", "labels.txt"};

Strings picture_with(const Strings& more) {
  Strings args = kPicture;
  args.insert(args.end(), more.begin(), more.end());
  return args;
}

// gflags' flags are global: each reading starts afresh.
Settings read(const Strings& args) {
  const gflags::FlagSaver saver;
  return read_settings(args);
}

TEST(SettingsTest, ReadsThePositionalArguments) {
  const Settings settings = read(picture_with({"input0"}));
  EXPECT_EQ(settings.action, Action::kRunPicture);
  EXPECT_EQ(settings.model, "net");
  EXPECT_EQ(settings.artifacts, "dir");
  EXPECT_EQ(settings.image, "cat.png");
  EXPECT_EQ(settings.labels, "labels.txt");
  EXPECT_EQ(settings.input_name, "input0");
}

TEST(SettingsTest, DefaultsGiveNoPreprocessing) {
  const Settings settings = read(kPicture);
  EXPECT_FALSE(settings.preprocessing.normalize.has_value());
  EXPECT_FALSE(settings.preprocessing.mean.has_value());
  EXPECT_FALSE(settings.preprocessing.resize.has_value());
  EXPECT_EQ(settings.preprocessing.color_order, "");
  EXPECT_EQ(settings.topk, 5);
  EXPECT_EQ(settings.threading.threads, 0);
  EXPECT_TRUE(settings.verify);
  EXPECT_FALSE(settings.json);
}

TEST(SettingsTest, ReadsEveryFlag) {
  const Settings settings = read(picture_with({"--no-normalize",
                                               "--bgr",
                                               "--mean",
                                               "104",
                                               "117",
                                               "123",
                                               "--std=1,2,3",
                                               "--mean-order=rgb",
                                               "--resizer",
                                               "cv2-linear",
                                               "--fit",
                                               "crop",
                                               "--resize",
                                               "300",
                                               "--crop",
                                               "227",
                                               "--layout",
                                               "NHWC",
                                               "--topk",
                                               "3",
                                               "--threads",
                                               "2",
                                               "--json",
                                               "--no-verify",
                                               "--no-plan-memory",
                                               "--target",
                                               "v3",
                                               "--outputs",
                                               "o.npz",
                                               "--dump-input",
                                               "i.npy"}));
  const PreprocessingFlags& flags = settings.preprocessing;
  EXPECT_EQ(flags.normalize, false);
  EXPECT_EQ(flags.color_order, "BGR");
  ASSERT_TRUE(flags.mean.has_value());
  EXPECT_THAT(*flags.mean, ElementsAre(104, 117, 123));
  ASSERT_TRUE(flags.std.has_value());
  EXPECT_THAT(*flags.std, ElementsAre(1, 2, 3));
  EXPECT_TRUE(flags.mean_in_rgb_order);
  EXPECT_EQ(flags.resizer, "cv2-linear");
  EXPECT_EQ(flags.fit, "crop");
  EXPECT_EQ(flags.resize, 300);
  EXPECT_EQ(flags.crop, 227);
  EXPECT_EQ(flags.layout, "NHWC");
  EXPECT_EQ(settings.topk, 3);
  EXPECT_EQ(settings.threading.threads, 2);
  EXPECT_TRUE(settings.json);
  EXPECT_FALSE(settings.verify);
  EXPECT_FALSE(settings.plan_memory);
  EXPECT_EQ(settings.target, "v3");
  EXPECT_EQ(settings.outputs, "o.npz");
  EXPECT_EQ(settings.dump_input, "i.npy");
}

TEST(SettingsTest, ChoosesTheAction) {
  EXPECT_EQ(read({"--help"}).action, Action::kHelp);
  EXPECT_EQ(read({"-h", "whatever"}).action, Action::kHelp);
  EXPECT_EQ(read({"--helpfull"}).action, Action::kFullHelp);
  EXPECT_EQ(read({"--version"}).action, Action::kVersion);
  EXPECT_EQ(read({"net", "dir", "--inputs", "x.npz"}).action, Action::kRunTensors);
  const Settings inspect = read({"--inspect", "dir/model.so"});
  EXPECT_EQ(inspect.action, Action::kInspect);
  EXPECT_EQ(inspect.model, "");
  EXPECT_EQ(inspect.artifacts, "dir/model.so");
  EXPECT_EQ(read({"net", "dir", "--inspect"}).model, "net");
}

TEST(SettingsTest, RefusesWhatMakesNoSense) {
  const std::vector<std::pair<Strings, std::string>> cases{
      {{}, "NAME is missing"},
      {{"net", "dir", "cat.png"}, "LABELS is missing"},
      {picture_with({"input0", "extra"}), "no use for the argument 'extra'"},
      {picture_with({"--rgb", "--bgr"}), "--rgb and --bgr contradict"},
      {picture_with({"--mean=1,2"}), "--mean takes three numbers"},
      {picture_with({"--mean="}), "--mean is given an empty value"},
      {picture_with({"--mean-order=bgr"}), "expected network or rgb"},
      {picture_with({"--resizer=lanczos"}), "lanczos"},
      {picture_with({"--fit=stretch"}), "stretch"},
      {picture_with({"--layout=CHWN"}), "CHWN"},
      {picture_with({"--resize=0"}), "--resize is 0"},
      {picture_with({"--crop=100000"}), "--crop is 100000"},
      {picture_with({"--topk=0"}), "--topk is 0"},
      {picture_with({"--threads=-1"}), "--threads is -1"},
      {picture_with({"--target="}), "--target is given an empty value"},
      {{"net", "--inputs=x.npz"}, "ARTIFACTS is missing"},
      {picture_with({"--inputs=x.npz"}), "no use for the argument 'cat.png' beside --inputs"},
      {{"net", "dir", "--inputs=x.npz", "--normalize"}, "--normalize has no meaning with --inputs"},
      {{"net", "dir", "--inputs=x.npz", "--dump-input=y"}, "--dump-input has no meaning"},
      {{"--inspect"}, "the artifact is missing"},
      {{"--inspect", "a", "b", "c"}, "no use for the argument 'c'"},
      {{"--inspect", "a", "--outputs=x"}, "--outputs has no meaning with --inspect"},
  };
  for (const auto& refused : cases) {
    EXPECT_THAT([&] { read(refused.first); }, ThrowsError(ErrorKind::kUsage, refused.second));
  }
}

TEST(SettingsTest, KnowsThatJsonIsAskedFor) {
  EXPECT_TRUE(asks_for_json(Strings{"--nope", "--json"}));
  EXPECT_FALSE(asks_for_json(Strings{"--nope", "json"}));
}

}  // namespace
}  // namespace run_model
