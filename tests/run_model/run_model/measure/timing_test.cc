#include "run_model/run_model/measure/timing.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "run_model/run_model/measure/cold_cache.h"
#include "run_model/run_model/measure/instances.h"

namespace run_model {
namespace {

void sleep_for(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

TEST(TimingTest, CallsAsOftenAsAsked) {
  MeasureSettings settings;
  settings.repeat = 7;
  settings.number = 3;
  settings.warm_up_runs = 5;
  int calls = 0;
  const TimingMeasurement result = measure_runs([&] { ++calls; }, settings);
  EXPECT_EQ(calls, 5 + 7 * 3);
  EXPECT_EQ(result.samples.size(), 7U);
  EXPECT_EQ(result.run.count, 7U);
  EXPECT_EQ(result.number, 3);
  EXPECT_EQ(result.warm_up_runs, 5U);
  EXPECT_EQ(result.stopped_by, StoppedBy::kCount);
  EXPECT_FALSE(result.pacing.has_value());
}

TEST(TimingTest, ASampleIsTheMeanOfItsRuns) {
  MeasureSettings settings;
  settings.repeat = 2;
  settings.number = 4;
  settings.warm_up_runs = 0;
  const TimingMeasurement result = measure_runs([] { sleep_for(5); }, settings);
  EXPECT_GE(result.run.min, 5.0);
  EXPECT_GE(result.measured, 40.0);
  // All runs of all samples fit into the time measured.
  EXPECT_LE(4 * (result.samples[0] + result.samples[1]), result.measured);
}

TEST(TimingTest, WarmsUpForATime) {
  MeasureSettings settings;
  settings.repeat = 1;
  settings.warm_up_runs = 1;
  settings.warm_up_seconds = 0.2;
  const TimingMeasurement result = measure_runs([] { sleep_for(5); }, settings);
  EXPECT_GE(result.warm_up, 200.0);
  EXPECT_GE(result.warm_up_runs, 2U);
  EXPECT_LE(result.warm_up_runs, 40U);
}

TEST(TimingTest, StopsByTime) {
  MeasureSettings settings;
  settings.repeat = 1000;
  settings.max_seconds = 0.02;
  const TimingMeasurement result = measure_runs([] { sleep_for(5); }, settings);
  EXPECT_EQ(result.stopped_by, StoppedBy::kSeconds);
  EXPECT_LE(result.samples.size(), 4U);
}

TEST(TimingTest, StartsOnAGrid) {
  MeasureSettings settings;
  settings.repeat = 6;
  settings.warm_up_runs = 0;
  settings.fps = 20;
  const TimingMeasurement result = measure_runs([] { sleep_for(5); }, settings);
  ASSERT_TRUE(result.pacing.has_value());
  // Five periods of 50 ms, and the last run.
  EXPECT_GE(result.measured, 255.0);
  EXPECT_GE(result.pacing->lateness.min, 0.0);
  EXPECT_GE(result.pacing->latency.min, 5.0);
  EXPECT_GT(result.pacing->idle_share, 0.0);
  EXPECT_LT(result.pacing->idle_share, 1.0);
}

TEST(TimingTest, CountsMissedStarts) {
  MeasureSettings settings;
  settings.repeat = 4;
  settings.warm_up_runs = 0;
  settings.fps = 100;
  // Starts are due at 10 and 20 ms while it runs, and the next one is at 30 ms.
  const TimingMeasurement result = measure_runs([] { sleep_for(25); }, settings);
  EXPECT_GE(result.pacing->missed, 6U);
  EXPECT_GE(result.measured, 115.0);
}

TEST(TimingTest, ExceptionsPass) {
  EXPECT_THROW(measure_runs([] { throw std::runtime_error("x"); }, MeasureSettings()),
               std::runtime_error);
}

TEST(TimingTest, TheClockIsCheap) {
  EXPECT_GE(clock_overhead(), 0.0);
  EXPECT_LT(clock_overhead(), 0.1);
}

TEST(TimingTest, EmptiesCachesOnEveryThread) {
  MeasureSettings settings;
  settings.repeat = 2;
  settings.cold_cache = true;
  ThreadPool threads({.threads = 2});
  const TimingMeasurement result = measure_runs([] {}, settings, &threads);
  EXPECT_GE(result.cold_cache_bytes, std::size_t{64} << 10);
  CacheEvictor evictor(&threads, 1000);
  evictor.evict();
  EXPECT_EQ(evictor.bytes(), 1000U);
}

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

TEST(InstancesTest, AllOfThemRunUntilTheFirstHasEnough) {
  std::array<std::atomic<int>, 3> counts{};
  std::vector<std::function<void()>> runs;
  for (std::atomic<int>& count : counts) {
    runs.push_back([&count] {
      ++count;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  const TimingMeasurement result =
      measure_instances(runs, {.repeat = 10, .warm_up_runs = 2, .show_progress = false});
  EXPECT_EQ(result.instances, 3);
  EXPECT_EQ(result.warm_up_runs, 2u);
  EXPECT_EQ(result.stopped_by, StoppedBy::kCount);
  EXPECT_EQ(counts[0], 12);
  EXPECT_GE(result.samples.size(), 10u);
  EXPECT_LE(result.samples.size(), static_cast<std::size_t>(counts[0] + counts[1] + counts[2] - 6));
  EXPECT_GT(counts[1], 2);
  EXPECT_GE(result.run.min, 1.0);
  EXPECT_NEAR(result.runs_per_second(),
              1000.0 * static_cast<double>(result.samples.size()) / result.measured, 1e-9);
}

TEST(InstancesTest, WhatOneThrowsEndsAll) {
  for (const int fails_at : {1, 5}) {
    std::atomic<int> count = 0;
    const std::vector<std::function<void()>> runs{[] { std::this_thread::yield(); },
                                                  [&] {
                                                    if (++count == fails_at)
                                                      throw std::runtime_error("no");
                                                  }};
    EXPECT_THROW(measure_instances(runs, {.repeat = 1'000'000, .warm_up_runs = 3}),
                 std::runtime_error);
  }
}

}  // namespace
}  // namespace run_model
