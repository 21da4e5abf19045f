#include "run_model/run_model/measure/stop_rule.h"

#include <gtest/gtest.h>

#include <vector>

namespace run_model {
namespace {

std::vector<double> alternating(std::size_t count, double low, double high) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(i % 2 == 0 ? low : high);
  return values;
}

TEST(StopRuleTest, StopsByCount) {
  MeasureSettings settings;
  settings.repeat = 3;
  StopRule rule(settings);
  EXPECT_EQ(rule.after(alternating(2, 1, 1), 100), std::nullopt);
  EXPECT_EQ(rule.after(alternating(3, 1, 1), 100), StoppedBy::kCount);
}

TEST(StopRuleTest, StopsAfterTheMostSeconds) {
  MeasureSettings settings;
  settings.max_seconds = 2;
  StopRule rule(settings);
  EXPECT_EQ(rule.after(alternating(1, 1, 1), 1.9), std::nullopt);
  EXPECT_EQ(rule.after(alternating(2, 1, 1), 2.0), StoppedBy::kSeconds);
}

TEST(StopRuleTest, GoesOnForTheLeastSeconds) {
  MeasureSettings settings;
  settings.repeat = 3;
  settings.min_seconds = 2;
  StopRule rule(settings);
  EXPECT_EQ(rule.after(alternating(3, 1, 1), 1), std::nullopt);
  EXPECT_EQ(rule.after(alternating(9, 1, 1), 1.9), std::nullopt);
  EXPECT_EQ(rule.after(alternating(10, 1, 1), 2), StoppedBy::kSeconds);
}

TEST(StopRuleTest, StopsWhenTheIntervalIsNarrow) {
  MeasureSettings settings;
  settings.repeat = 1000;
  settings.until_interval = 0.01;
  StopRule equal(settings);
  EXPECT_EQ(equal.after(alternating(19, 5, 5), 1), std::nullopt);  // too few to tell
  EXPECT_EQ(equal.after(alternating(20, 5, 5), 1), StoppedBy::kInterval);
  StopRule wide(settings);
  EXPECT_EQ(wide.after(alternating(999, 5, 6), 1), std::nullopt);
  EXPECT_EQ(wide.after(alternating(1000, 5, 6), 1), StoppedBy::kCount);
}

TEST(StopRuleTest, LooksAtTheIntervalMoreAndMoreRarely) {
  MeasureSettings settings;
  settings.repeat = 1000;
  settings.until_interval = 0.01;
  StopRule rule(settings);
  EXPECT_EQ(rule.after(alternating(40, 5, 6), 1), std::nullopt);
  // The next look is at 45 samples.
  EXPECT_EQ(rule.after(alternating(44, 5, 5), 1), std::nullopt);
  EXPECT_EQ(rule.after(alternating(45, 5, 5), 1), StoppedBy::kInterval);
}

}  // namespace
}  // namespace run_model
