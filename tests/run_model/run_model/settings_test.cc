#include "run_model/run_model/settings.h"

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_model/run_model/setting_groups.h"
#include "run_model/shared/arguments.h"
#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

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

TEST(SettingsTest, TheNameMayBeAFolderAsShellsCompleteIt) {
  EXPECT_EQ(read({"net/", "dir/", "cat.png"}).model, "net");
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
                                               "--jpeg-decoder=stb",
                                               "--fit",
                                               "crop",
                                               "--resize",
                                               "300",
                                               "--crop",
                                               "227",
                                               "--size=640x480",
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
  EXPECT_TRUE(has_elements(*flags.mean, {104, 117, 123}));
  ASSERT_TRUE(flags.std.has_value());
  EXPECT_TRUE(has_elements(*flags.std, {1, 2, 3}));
  EXPECT_TRUE(flags.mean_in_rgb_order);
  EXPECT_EQ(flags.resizer, "cv2-linear");
  EXPECT_EQ(flags.jpeg_decoder, JpegDecoder::kStb);
  EXPECT_EQ(flags.fit, "crop");
  EXPECT_EQ(flags.resize, 300);
  EXPECT_EQ(flags.crop, 227);
  ASSERT_TRUE(flags.size.has_value());
  EXPECT_TRUE(has_elements(*flags.size, {640, 480}));
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
  EXPECT_EQ(read({"--help"}).help, HelpRequest::kHelp);
  EXPECT_EQ(read({"-h", "whatever"}).help, HelpRequest::kHelp);
  EXPECT_EQ(read({"--helpfull"}).help, HelpRequest::kFullHelp);
  EXPECT_EQ(read({"--version"}).help, HelpRequest::kVersion);
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
      {{"net", "dir"}, "IMAGE is missing"},
      {picture_with({"--score-threshold=2"}), "--score-threshold is not from 0 to 1"},
      {picture_with({"--draw="}), "--draw is given an empty value"},
      {picture_with({"--given-outputs=x.npz", "--print-time"}), "--print-time has no meaning"},
      {{"net", "dir", "-", "--profile"}, "--profile has no meaning with many pictures"},
      {{"net", "dir", "-", "--given-outputs=x.npz"}, "--given-outputs has no meaning with many"},
      {{"net", "dir", "--inputs=x.npz", "--draw=y"}, "--draw has no meaning without a picture"},
      {picture_with({"input0", "extra"}), "no use for the argument 'extra'"},
      {picture_with({"--rgb", "--bgr"}), "--rgb and --bgr contradict"},
      {picture_with({"--mean=1,2"}), "--mean takes three numbers"},
      {picture_with({"--mean="}), "--mean is given an empty value"},
      {picture_with({"--mean-order=bgr"}), "expected network or rgb"},
      {picture_with({"--resizer=lanczos"}), "lanczos"},
      {picture_with({"--jpeg-decoder=nanojpeg"}), "nanojpeg"},
      {picture_with({"--fit=stretch"}), "stretch"},
      {picture_with({"--layout=CHWN"}), "CHWN"},
      {picture_with({"--resize=0"}), "--resize is 0"},
      {picture_with({"--crop=100000"}), "--crop is 100000"},
      {picture_with({"--size=640"}), "--size is '640'"},
      {picture_with({"--size=640x480x3"}), "--size is '640x480x3'"},
      {picture_with({"--size=640x0"}), "expected width and height, 1 to"},
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
    EXPECT_TRUE(throws_error([&] { read(refused.first); }, ErrorKind::kUsage, refused.second));
  }
}

TEST(SettingsTest, MeasuringNeedsNoPicture) {
  const Settings library = read({"dir/model.so", "--print-time"});
  EXPECT_EQ(library.action, Action::kRunTensors);
  EXPECT_EQ(library.model, "");
  EXPECT_EQ(library.artifacts, "dir/model.so");
  EXPECT_EQ(library.fill_mode, FillMode::kRandom);
  for (const char* flag : {"--repeat=3", "--profile", "--sweep=threads", "--print-memory"}) {
    const Settings settings = read({"net", "dir", flag});
    EXPECT_EQ(settings.action, Action::kRunTensors) << flag;
    EXPECT_EQ(settings.model, "net");
    EXPECT_EQ(settings.fill_mode, FillMode::kRandom);
  }
  EXPECT_EQ(read({"net.tar", "--repeat=3", "--seed=5"}).seed, 5u);
  EXPECT_EQ(read({"net", "dir", "--repeat=3", "--inputs=x.npz"}).fill_mode, std::nullopt);
  EXPECT_EQ(read(picture_with({"--print-time"})).action, Action::kRunPicture);
  EXPECT_TRUE(throws_error([] { read({"net", "--print-time"}); }, ErrorKind::kUsage,
                           "NAME or ARTIFACTS is missing"));
}

TEST(SettingsTest, KnowsThatJsonIsAskedFor) {
  EXPECT_TRUE(asks_for_json(Strings{"--nope", "--json"}));
  EXPECT_FALSE(asks_for_json(Strings{"--nope", "json"}));
}

// gflags' flags are global: each reading starts afresh.
Settings read_run(Strings flags) {
  const gflags::FlagSaver saver;
  flags.insert(flags.begin(), {"net", "dir", "--fill-mode=random"});
  return read_settings(flags);
}

TEST(MeasureFlagsTest, NothingIsMeasuredUnlessAsked) {
  EXPECT_FALSE(read_run({}).measure.wanted);
  for (const char* flag :
       {"--print-time", "--repeat=3", "--number=2", "--warmup=1", "--fps=5", "--cold-cache",
        "--until-ci=1%", "--min-seconds=1", "--max-seconds=1", "--warmup-seconds=1", "--times=x"}) {
    EXPECT_TRUE(read_run({flag}).measure.wanted) << flag;
  }
}

TEST(MeasureFlagsTest, ReadsEveryFlag) {
  const MeasureSettings settings =
      read_run({"--repeat=7", "--number=3", "--warmup=0", "--warmup-seconds=0.5", "--min-seconds=1",
                "--max-seconds=2", "--times=t.txt"})
          .measure;
  EXPECT_EQ(settings.repeat, 7U);
  EXPECT_EQ(settings.number, 3);
  EXPECT_EQ(settings.warm_up_runs, 0U);
  EXPECT_EQ(settings.warm_up_seconds, 0.5);
  EXPECT_EQ(settings.min_seconds, 1.0);
  EXPECT_EQ(settings.max_seconds, 2.0);
  EXPECT_EQ(settings.times, "t.txt");
  EXPECT_EQ(read_run({"--until-ci", "2.5%"}).measure.until_interval, 0.025);
  EXPECT_EQ(read_run({"--fps", "12.5"}).measure.fps, 12.5);
  EXPECT_TRUE(read_run({"--cold-cache"}).measure.cold_cache);
}

TEST(MeasureFlagsTest, TimeIsLimitedWhereNobodyAskedForACount) {
  EXPECT_EQ(read_run({"--print-time"}).measure.repeat, 100U);
  EXPECT_EQ(read_run({"--print-time"}).measure.max_seconds, 10.0);
  EXPECT_EQ(read_run({"--repeat=1000"}).measure.max_seconds, 0.0);
  EXPECT_EQ(read_run({"--min-seconds=30"}).measure.max_seconds, 0.0);
  EXPECT_EQ(read_run({"--until-ci=1"}).measure.max_seconds, 60.0);
  EXPECT_GT(read_run({"--until-ci=1"}).measure.repeat, 1000U);
  EXPECT_EQ(read_run({"--until-ci=1", "--repeat=50", "--max-seconds=5"}).measure.repeat, 50U);
  EXPECT_EQ(read_run({"--until-ci=1", "--repeat=50", "--max-seconds=5"}).measure.max_seconds, 5.0);
}

TEST(MeasureFlagsTest, RefusesWhatMakesNoSense) {
  const std::vector<std::pair<Strings, std::string>> cases{
      {{"--repeat=0"}, "--repeat is 0"},
      {{"--number=-1"}, "--number is -1"},
      {{"--warmup=-1"}, "--warmup is -1"},
      {{"--fps=0"}, "--fps is 0"},
      {{"--fps=nan"}, "--fps is nan"},
      {{"--min-seconds=-2"}, "--min-seconds is -2"},
      {{"--max-seconds=inf"}, "--max-seconds is inf"},
      {{"--min-seconds=3", "--max-seconds=2"}, "--min-seconds is greater"},
      {{"--until-ci=0"}, "--until-ci is 0"},
      {{"--until-ci=some"}, "--until-ci is 'some'"},
      {{"--until-ci=-1%"}, "--until-ci is '-1%'"},
      {{"--until-ci=101%"}, "--until-ci is '101%'"},
      {{"--cold-cache", "--number=2"}, "--cold-cache and --number"},
      {{"--fps=5", "--number=2"}, "--fps and --number"},
      {{"--instances=0"}, "--instances is 0"},
      {{"--instances=2", "--fps=5"}, "--instances and --fps"},
      {{"--instances=2", "--cold-cache"}, "--instances and --cold-cache"},
      {{"--instances=2", "--sweep=threads"}, "--sweep and --instances"},
      {{"--fps=5", "--cold-cache"}, "--fps and --cold-cache"},
      {{"--noise=1%"}, "--noise has no meaning without --compare"},
      {{"--topk=3"}, "--topk has no meaning without a picture"},
  };
  for (const auto& refused : cases) {
    EXPECT_TRUE(throws_error([&] { read_run(refused.first); }, ErrorKind::kUsage, refused.second))
        << refused.second;
  }
}

TEST(MeasureFlagsTest, ComparesInsteadOfRunning) {
  const gflags::FlagSaver saver;
  const Settings settings = read_settings(
      Strings{"--compare", "a.json", "b.json", "--noise=5", "--atol=0", "--rtol=0.5"});
  EXPECT_EQ(settings.action, Action::kCompare);
  EXPECT_EQ(settings.first, "a.json");
  EXPECT_EQ(settings.second, "b.json");
  EXPECT_EQ(settings.compare.noise, 0.05);
  EXPECT_EQ(settings.compare.atol, 0.0);
  EXPECT_EQ(settings.compare.rtol, 0.5);
}

TEST(MeasureFlagsTest, ComparisonRefusesFlagsOfARun) {
  const auto reading = [](const Strings& args) {
    return [args] {
      const gflags::FlagSaver saver;
      read_settings(args);
    };
  };
  EXPECT_TRUE(throws_error(reading({"--compare", "a", "b", "--repeat=5"}), ErrorKind::kUsage,
                           "--repeat has no meaning with --compare"));
  EXPECT_TRUE(throws_error(reading({"--compare", "a"}), ErrorKind::kUsage, "takes two files"));
  EXPECT_TRUE(throws_error(reading({"--compare", "a", "b", "--rtol=-1"}), ErrorKind::kUsage,
                           "--rtol is -1"));
  EXPECT_TRUE(throws_error(reading({"net", "dir", "--fill-mode=ones", "--seed=1"}),
                           ErrorKind::kUsage, "--seed has no meaning without --fill-mode random"));
  EXPECT_TRUE(throws_error(reading({"--inspect", "dir", "--fps=2"}), ErrorKind::kUsage,
                           "--fps has no meaning with --inspect"));
}

TEST(MeasureFlagsTest, FillModeNeedsNoPicture) {
  const Settings settings = read_run({"--seed=18446744073709551615"});
  EXPECT_EQ(settings.action, Action::kRunTensors);
  EXPECT_EQ(settings.fill_mode, FillMode::kRandom);
  EXPECT_EQ(settings.seed, 18446744073709551615U);
  const gflags::FlagSaver saver;
  const Settings picture =
      read_settings(Strings{"net", "dir", "cat.png", "labels.txt", "data", "--fill-mode=zeros"});
  EXPECT_EQ(picture.action, Action::kRunPicture);
  EXPECT_EQ(picture.fill_mode, FillMode::kZeros);
}

ProfileSettings read_profile(const Strings& flags) { return read_run(flags).profile; }

TEST(ProfileFlagsTest, IsOffByDefault) {
  const ProfileSettings settings = read_profile({});
  EXPECT_FALSE(settings.wanted);
  EXPECT_FALSE(settings.table);
}

TEST(ProfileFlagsTest, ReadsTheFlags) {
  const ProfileSettings settings =
      read_profile({"--profile", "--profile-sort=order", "--profile-top=5"});
  EXPECT_TRUE(settings.wanted);
  EXPECT_TRUE(settings.table);
  EXPECT_EQ(settings.order, ProfileOrder::kRunning);
  EXPECT_EQ(settings.top, 5u);
}

TEST(ProfileFlagsTest, AFileIsEnough) {
  const ProfileSettings settings = read_profile({"--profile-csv", "p.csv"});
  EXPECT_TRUE(settings.wanted);
  EXPECT_FALSE(settings.table);
  EXPECT_EQ(settings.csv, "p.csv");
}

TEST(ProfileFlagsTest, RefusesWhatMakesNoSense) {
  const auto refused = [](const std::vector<std::string>& args, const std::string& words) {
    EXPECT_TRUE(throws_error([&] { read_profile(args); }, ErrorKind::kUsage, words));
  };
  refused({"--profile", "--profile-sort=name"}, "'name', expected time or order");
  refused({"--profile", "--profile-top=-1"}, "expected 0 or more");
  refused({"--profile-top=3"}, "--profile-top has no meaning without --profile");
  refused({"--profile-sort=time", "--profile-csv=p"}, "--profile-sort has no meaning");
  refused({"--profile-html="}, "--profile-html is given an empty value");
}

}  // namespace
}  // namespace run_model
