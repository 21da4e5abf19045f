#include "run_model/run_model/compare/timed_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "run_model/run_model/compare/compare.h"
#include "tests/error_matcher.h"
#include "tests/temporary_folder.h"

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
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
  EXPECT_THAT(timed.samples, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(timed.warnings, ElementsAre("busy"));
  for (const Condition& condition : timed.conditions) {
    if (condition.name == "CPU") {
      EXPECT_EQ(condition.value, "a CPU");
    }
    if (condition.name == "CPUs") {
      EXPECT_EQ(condition.value, "0,1");
    }
    if (condition.name == "governor") {
      EXPECT_EQ(condition.value, "");
    }
  }
}

TEST_F(TimedReportTest, RefusesWhatIsNoReport) {
  EXPECT_THAT(reading(""), ThrowsError(ErrorKind::kFormat, "report.json"));
  EXPECT_THAT(reading(report().dump().substr(0, 50)), ThrowsError(ErrorKind::kFormat, "from byte"));
  EXPECT_THAT(reading("[1]"), ThrowsError(ErrorKind::kFormat, "report.json"));
  EXPECT_THAT(reading("{}"), ThrowsError(ErrorKind::kFormat, "schema_version"));
  EXPECT_THAT(reading(std::string(100'000, '[')), ThrowsError(ErrorKind::kFormat, "report.json"));
  EXPECT_THAT(reading(R"({"schema_version": 1, "error": {"code": 3}})"),
              ThrowsError(ErrorKind::kFormat, "a run that failed"));
  EXPECT_THAT([&] { read_timed_report(folder_ / "none.json"); },
              ThrowsError(ErrorKind::kFile, "none.json"));
}

TEST_F(TimedReportTest, RefusesAnotherSchema) {
  json other = report();
  other["schema_version"] = 2;
  EXPECT_THAT(reading(other.dump()), ThrowsError(ErrorKind::kIncompatible, "schema_version 2"));
}

TEST_F(TimedReportTest, RefusesUnusableSamples) {
  json none = report();
  none["timing"].erase("repeated");
  EXPECT_THAT(reading(none.dump()), ThrowsError(ErrorKind::kFormat, "no samples of repeated runs"));
  const auto with = [](const json& samples) {
    json changed = report();
    changed["timing"]["repeated"]["samples"] = samples;
    return changed.dump();
  };
  EXPECT_THAT(reading(with({1, 2, 3, 4, 5})), ThrowsError(ErrorKind::kFormat, "has 5 samples"));
  EXPECT_THAT(reading(with({1, 2, 3, 4, 5, 0})), ThrowsError(ErrorKind::kFormat, "samples[5]"));
  EXPECT_THAT(reading(with({1, 2, 3, 4, 5, -1})), ThrowsError(ErrorKind::kFormat, "samples[5]"));
  EXPECT_THAT(reading(with({1, 2, 3, 4, 5, "6"})), ThrowsError(ErrorKind::kFormat, "samples[5]"));
  EXPECT_THAT(reading(with(json(100'001, 1.0))), ThrowsError(ErrorKind::kFormat, "100001 samples"));
  EXPECT_THAT(reading(with({{"a", 1}})), ThrowsError(ErrorKind::kFormat, "samples"));
}

// Members of other kinds than a report has them must not end the program.
TEST_F(TimedReportTest, OddConditionsAreUnknown) {
  json odd = report();
  odd["machine"] = {1, 2};
  odd["thread_plan"] = "x";
  odd["model"] = {{"deep", {{{1}}}}};
  EXPECT_THAT(read(odd.dump()).warnings, ElementsAre());
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
  EXPECT_THAT(comparison.times->differences,
              ElementsAre("CPU: 'a CPU', then '\\x1b[31mred'", "threads: '2', then '4'"));
  EXPECT_FALSE(comparison.worse());
  EXPECT_THAT(comparison_text(comparison), HasSubstr("Not the same threads: '2', then '4'\n"));
  EXPECT_EQ(json::parse(comparison_json(comparison))["verdict"], "no difference");
}

}  // namespace
}  // namespace run_model
