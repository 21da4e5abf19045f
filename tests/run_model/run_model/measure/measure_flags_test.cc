#include "run_model/run_model/measure/measure_flags.h"

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_model/run_model/settings.h"
#include "tests/error_matcher.h"

namespace run_model {
namespace {

using Strings = std::vector<std::string>;

// gflags' flags are global: each reading starts afresh.
Settings read(Strings flags) {
  const gflags::FlagSaver saver;
  flags.insert(flags.begin(), {"net", "dir", "--fill-mode=random"});
  return read_settings(flags);
}

TEST(MeasureFlagsTest, NothingIsMeasuredUnlessAsked) {
  EXPECT_FALSE(read({}).measure.wanted);
  for (const char* flag :
       {"--print-time", "--repeat=3", "--number=2", "--warmup=1", "--fps=5", "--cold-cache",
        "--until-ci=1%", "--min-seconds=1", "--max-seconds=1", "--warmup-seconds=1", "--times=x"}) {
    EXPECT_TRUE(read({flag}).measure.wanted) << flag;
  }
}

TEST(MeasureFlagsTest, ReadsEveryFlag) {
  const MeasureSettings settings =
      read({"--repeat=7", "--number=3", "--warmup=0", "--warmup-seconds=0.5", "--min-seconds=1",
            "--max-seconds=2", "--times=t.txt"})
          .measure;
  EXPECT_EQ(settings.repeat, 7U);
  EXPECT_EQ(settings.number, 3);
  EXPECT_EQ(settings.warm_up_runs, 0U);
  EXPECT_EQ(settings.warm_up_seconds, 0.5);
  EXPECT_EQ(settings.min_seconds, 1.0);
  EXPECT_EQ(settings.max_seconds, 2.0);
  EXPECT_EQ(settings.times, "t.txt");
  EXPECT_EQ(read({"--until-ci", "2.5%"}).measure.until_interval, 0.025);
  EXPECT_EQ(read({"--fps", "12.5"}).measure.fps, 12.5);
  EXPECT_TRUE(read({"--cold-cache"}).measure.cold_cache);
}

TEST(MeasureFlagsTest, TimeIsLimitedWhereNobodyAskedForACount) {
  EXPECT_EQ(read({"--print-time"}).measure.repeat, 100U);
  EXPECT_EQ(read({"--print-time"}).measure.max_seconds, 10.0);
  EXPECT_EQ(read({"--repeat=1000"}).measure.max_seconds, 0.0);
  EXPECT_EQ(read({"--min-seconds=30"}).measure.max_seconds, 0.0);
  EXPECT_EQ(read({"--until-ci=1"}).measure.max_seconds, 60.0);
  EXPECT_GT(read({"--until-ci=1"}).measure.repeat, 1000U);
  EXPECT_EQ(read({"--until-ci=1", "--repeat=50", "--max-seconds=5"}).measure.repeat, 50U);
  EXPECT_EQ(read({"--until-ci=1", "--repeat=50", "--max-seconds=5"}).measure.max_seconds, 5.0);
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
      {{"--fps=5", "--cold-cache"}, "--fps and --cold-cache"},
      {{"--noise=1%"}, "--noise has no meaning without --compare"},
      {{"--topk=3"}, "--topk has no meaning without a picture"},
  };
  for (const auto& refused : cases) {
    EXPECT_THAT([&] { read(refused.first); }, ThrowsError(ErrorKind::kUsage, refused.second))
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
  EXPECT_THAT(reading({"--compare", "a", "b", "--repeat=5"}),
              ThrowsError(ErrorKind::kUsage, "--repeat has no meaning with --compare"));
  EXPECT_THAT(reading({"--compare", "a"}), ThrowsError(ErrorKind::kUsage, "takes two files"));
  EXPECT_THAT(reading({"--compare", "a", "b", "--rtol=-1"}),
              ThrowsError(ErrorKind::kUsage, "--rtol is -1"));
  EXPECT_THAT(reading({"net", "dir", "--fill-mode=ones", "--seed=1"}),
              ThrowsError(ErrorKind::kUsage, "--seed has no meaning without --fill-mode random"));
  EXPECT_THAT(reading({"--inspect", "dir", "--fps=2"}),
              ThrowsError(ErrorKind::kUsage, "--fps has no meaning with --inspect"));
}

TEST(MeasureFlagsTest, FillModeNeedsNoPicture) {
  const Settings settings = read({"--seed=18446744073709551615"});
  EXPECT_EQ(settings.action, Action::kRunTensors);
  EXPECT_EQ(settings.fill_mode, FillMode::kRandom);
  EXPECT_EQ(settings.seed, 18446744073709551615U);
  const gflags::FlagSaver saver;
  const Settings picture =
      read_settings(Strings{"net", "dir", "cat.png", "labels.txt", "data", "--fill-mode=zeros"});
  EXPECT_EQ(picture.action, Action::kRunPicture);
  EXPECT_EQ(picture.fill_mode, FillMode::kZeros);
}

}  // namespace
}  // namespace run_model
