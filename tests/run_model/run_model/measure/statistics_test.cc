#include "run_model/run_model/measure/statistics.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/run_model/run_model/timing_fixture.h"

namespace run_model {
namespace {

TEST(StatisticsTest, AgreesWithNumpy) {
  const nlohmann::json fixture = timing_fixture();
  ASSERT_GE(fixture["statistics"].size(), 10U);
  for (const nlohmann::json& expected : fixture["statistics"]) {
    const std::vector<double> values = expected["values"];
    SCOPED_TRACE(std::to_string(values.size()) + " values");
    const Statistics actual = describe(values);
    EXPECT_EQ(actual.count, values.size());
    EXPECT_DOUBLE_EQ(actual.min, expected["min"]);
    EXPECT_DOUBLE_EQ(actual.median, expected["median"]);
    EXPECT_DOUBLE_EQ(actual.p90, expected["p90"]);
    EXPECT_DOUBLE_EQ(actual.p95, expected["p95"]);
    EXPECT_DOUBLE_EQ(actual.p99, expected["p99"]);
    EXPECT_DOUBLE_EQ(actual.max, expected["max"]);
    EXPECT_NEAR(actual.mean, expected["mean"], 1e-12);
    EXPECT_NEAR(actual.std, expected["std"], 1e-12);
    ASSERT_EQ(actual.interval.has_value(), !expected["median_interval"].is_null());
    if (!actual.interval) continue;
    EXPECT_EQ(actual.interval->low, expected["median_interval"][0]);
    EXPECT_EQ(actual.interval->high, expected["median_interval"][1]);
  }
}

TEST(StatisticsTest, NoValuesAreAllZero) {
  const Statistics none = describe({});
  EXPECT_EQ(none.count, 0U);
  EXPECT_EQ(none.max, 0.0);
  EXPECT_FALSE(none.interval.has_value());
  EXPECT_FALSE(none.relative_interval().has_value());
}

TEST(StatisticsTest, IntervalOfManyValuesNarrows) {
  // 0, 1, … 9999: the interval's ranks are 5000 -+ 1.96 * sqrt(10000) / 2 by the central limit
  // theorem.
  std::vector<double> values(10000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i);
  const Statistics statistics = describe(values);
  ASSERT_TRUE(statistics.interval.has_value());
  EXPECT_NEAR(statistics.interval->low, 5000 - 98, 2);
  EXPECT_NEAR(statistics.interval->high, 5000 + 98, 2);
  EXPECT_NEAR(*statistics.relative_interval(), 196.0 / 5000, 0.001);
}

}  // namespace
}  // namespace run_model
