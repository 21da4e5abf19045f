#include "run_model/run_model/measure/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "run_model/run_model/measure/clock_overhead.h"
#include "run_model/run_model/measure/cold_cache.h"

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

}  // namespace
}  // namespace run_model
