#include "run_model/run_model/compare/times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_model/run_model/compare/compare.h"
#include "run_model/run_model/tensor_values.h"
#include "tests/has_elements.h"
#include "tests/run_model/run_model/timing_fixture.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json report() {
  return {{"schema_version", 1},
          {"model", "net"},
          {"threads", 2},
          {"thread_plan", {{"cpus", {0, 1}}}},
          {"machine", {{"cpu", "a CPU"}, {"warnings", {"busy"}}}},
          {"timing", {{"repeated", {{"number", 1}, {"samples", {1, 2, 3, 4, 5, 6}}}}}}};
}

class TimedReportTest : public ::testing::Test {
 protected:
  TimedReport read(const std::string& text) const {
    folder_.write("report.json", text);
    return read_timed_report(folder_ / "report.json");
  }
  auto reading(const std::string& text) const {
    return [this, text] { read(text); };
  }

  TemporaryFolder folder_;
};

TEST_F(TimedReportTest, ReadsSamplesAndConditions) {
  const TimedReport timed = read(report().dump());
  EXPECT_TRUE(has_elements(timed.samples, {1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(has_elements(timed.warnings, {"busy"}));
  for (const Condition& condition : timed.conditions) {
    if (condition.name == "CPU") {
      EXPECT_EQ(condition.value, "a CPU");
    }
    if (condition.name == "CPUs") {
      EXPECT_EQ(condition.value, "0,1");
    }
    if (condition.name == "instances") {
      EXPECT_EQ(condition.value, "1");
    }
    if (condition.name == "governor") {
      EXPECT_EQ(condition.value, "");
    }
  }
}

TEST_F(TimedReportTest, RefusesWhatIsNoReport) {
  EXPECT_TRUE(
      throws_error(reading(""), ErrorKind::kFormat, {"report.json", "--print-time --json"}));
  EXPECT_TRUE(
      throws_error(reading(report().dump().substr(0, 50)), ErrorKind::kFormat, "from byte"));
  EXPECT_TRUE(throws_error(reading("[1]"), ErrorKind::kFormat, "report.json"));
  EXPECT_TRUE(throws_error(reading("{}"), ErrorKind::kFormat, "schema_version"));
  EXPECT_TRUE(throws_error(reading(std::string(100'000, '[')), ErrorKind::kFormat, "report.json"));
  EXPECT_TRUE(throws_error(reading(R"({"schema_version": 1, "error": {"code": 3}})"),
                           ErrorKind::kFormat, "a run that failed"));
  EXPECT_TRUE(throws_error([&] { read_timed_report(folder_ / "none.json"); }, ErrorKind::kFile,
                           "none.json"));
}

TEST_F(TimedReportTest, RefusesAnotherSchema) {
  json other = report();
  other["schema_version"] = 2;
  EXPECT_TRUE(throws_error(reading(other.dump()), ErrorKind::kIncompatible, "schema_version 2"));
}

TEST_F(TimedReportTest, RefusesUnusableSamples) {
  json none = report();
  none["timing"].erase("repeated");
  EXPECT_TRUE(
      throws_error(reading(none.dump()), ErrorKind::kFormat, "no samples of repeated runs"));
  const auto with = [](const json& samples) {
    json changed = report();
    changed["timing"]["repeated"]["samples"] = samples;
    return changed.dump();
  };
  EXPECT_TRUE(throws_error(reading(with({1, 2, 3, 4, 5})), ErrorKind::kFormat, "has 5 samples"));
  EXPECT_TRUE(throws_error(reading(with({1, 2, 3, 4, 5, 0})), ErrorKind::kFormat, "samples[5]"));
  EXPECT_TRUE(throws_error(reading(with({1, 2, 3, 4, 5, -1})), ErrorKind::kFormat, "samples[5]"));
  EXPECT_TRUE(throws_error(reading(with({1, 2, 3, 4, 5, "6"})), ErrorKind::kFormat, "samples[5]"));
  EXPECT_TRUE(
      throws_error(reading(with(json(100'001, 1.0))), ErrorKind::kFormat, "100001 samples"));
  EXPECT_TRUE(throws_error(reading(with({{"a", 1}})), ErrorKind::kFormat, "samples"));
}

// Members of other kinds than a report has them must not end the program.
TEST_F(TimedReportTest, OddConditionsAreUnknown) {
  json odd = report();
  odd["machine"] = {1, 2};
  odd["thread_plan"] = "x";
  odd["model"] = {{"deep", {{{1}}}}};
  EXPECT_TRUE(has_elements(read(odd.dump()).warnings, {}));
}

TEST_F(TimedReportTest, ComparisonNamesWhatDiffers) {
  json other = report();
  other["machine"]["cpu"] = "\x1b[31mred";
  other["threads"] = 4;
  folder_.write("a.json", report().dump());
  folder_.write("b.json", other.dump());
  const Comparison comparison =
      compare_files(folder_ / "a.json", folder_ / "b.json", CompareSettings());
  ASSERT_TRUE(comparison.times.has_value());
  EXPECT_TRUE(has_elements(comparison.times->differences,
                           {"CPU: 'a CPU', then '\\x1b[31mred'", "threads: '2', then '4'"}));
  EXPECT_FALSE(comparison.worse());
  EXPECT_THAT(comparison_text(comparison), HasSubstr("Not the same threads: '2', then '4'\n"));
  EXPECT_EQ(json::parse(comparison_json(comparison))["verdict"], "no difference");
}

// Times around `middle` with a long tail, as runs have it.
class Times {
 public:
  std::vector<double> take(std::size_t count, double middle) {
    std::vector<double> times;
    for (std::size_t i = 0; i < count; ++i) times.push_back(middle * (1 - 0.03 * std::log(next())));
    return times;
  }

 private:
  // Above 0, up to 1.
  double next() { return static_cast<double>((split_mix_64(state_) >> 11) + 1) / 0x1p53; }
  std::uint64_t state_ = 1;
};

TEST(TimeRatioTest, AgreesWithScipy) {
  const nlohmann::json fixture = timing_fixture();
  ASSERT_EQ(fixture["ratios"].size(), 3U);
  for (const nlohmann::json& expected : fixture["ratios"]) {
    const std::vector<double> first = expected["first"];
    const std::vector<double> second = expected["second"];
    const TimeRatio actual = compare_times(first, second, 0.02);
    EXPECT_DOUBLE_EQ(actual.estimate, expected["estimate"]);
    EXPECT_DOUBLE_EQ(actual.low, expected["low"]);
    EXPECT_DOUBLE_EQ(actual.high, expected["high"]);
    EXPECT_DOUBLE_EQ(actual.of_medians, expected["of_medians"]);
    EXPECT_NEAR(actual.widened, expected["widened"], 1e-9);
  }
}

TEST(TimeRatioTest, FindsADifferenceEitherWay) {
  Times times;
  const std::vector<double> a = times.take(100, 10);
  const std::vector<double> b = times.take(100, 9);
  const TimeRatio faster = compare_times(a, b, 0.02);
  EXPECT_EQ(faster.verdict, TimeVerdict::kFaster);
  EXPECT_NEAR(faster.estimate, 0.9, 0.02);
  EXPECT_LE(faster.low, 0.9);
  EXPECT_GE(faster.high, 0.9);
  EXPECT_EQ(compare_times(b, a, 0.02).verdict, TimeVerdict::kSlower);
}

TEST(TimeRatioTest, HardlyEverFindsADifferenceThatIsNotThere) {
  Times times;
  int found = 0, contained = 0;
  for (int i = 0; i < 400; ++i) {
    const TimeRatio ratio = compare_times(times.take(30, 5), times.take(30, 5), 0);
    found += ratio.verdict != TimeVerdict::kNoDifference;
    contained += ratio.low <= 1 && ratio.high >= 1;
  }
  // 5 % of 400 are 20 with a deviation of 4.4; correlation by chance only widens intervals.
  EXPECT_LE(found, 33);
  EXPECT_GE(contained, 367);
  // An interval that contains everything would not find real differences either.
  EXPECT_LT(contained, 400);
}

TEST(TimeRatioTest, SmallDifferencesAreNone) {
  Times times;
  const std::vector<double> a = times.take(500, 10);
  const std::vector<double> b = times.take(500, 10.1);
  const TimeRatio ratio = compare_times(a, b, 0.02);
  EXPECT_GT(ratio.low, 1.0);
  EXPECT_EQ(ratio.verdict, TimeVerdict::kNoDifference);
  EXPECT_EQ(compare_times(a, b, 0.005).verdict, TimeVerdict::kSlower);
}

// A machine whose speed drifts: each sample resembles the one before, so that 100 of them tell
// less.
TEST(TimeRatioTest, DriftWidensTheInterval) {
  std::vector<double> slow_then_fast, fast_then_slow;
  for (int i = 0; i < 100; ++i) {
    slow_then_fast.push_back(10 + std::cos(i / 20.0));
    fast_then_slow.push_back(10 + std::sin(i / 20.0));
  }
  const TimeRatio ratio = compare_times(slow_then_fast, fast_then_slow, 0.01);
  EXPECT_GT(ratio.widened, 5.0);
  EXPECT_EQ(ratio.verdict, TimeVerdict::kNoDifference);
}

TEST(TimeRatioTest, EqualSamplesAndManyOfThem) {
  const std::vector<double> same(6, 2.0);
  const TimeRatio equal = compare_times(same, same, 0.02);
  EXPECT_EQ(equal.estimate, 1.0);
  EXPECT_EQ(equal.widened, 1.0);
  EXPECT_EQ(equal.verdict, TimeVerdict::kNoDifference);
  Times times;
  const TimeRatio many = compare_times(times.take(50'000, 3), times.take(7'001, 6), 0.02);
  EXPECT_NEAR(many.estimate, 2.0, 0.02);
  EXPECT_EQ(many.verdict, TimeVerdict::kSlower);
}

}  // namespace
}  // namespace run_model
