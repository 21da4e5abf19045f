#include "rpc/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model::rpc {
namespace {

using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::Ge;
using testing::Lt;
using testing::SizeIs;

void wait(double milliseconds) {
  std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(milliseconds));
}

TEST(Timing, WarmsUpThenCallsInRows) {
  std::vector<std::string> calls;
  Timing timing;
  timing.number = 2;
  timing.repeat = 2;
  const auto seconds =
      measure([&] { calls.push_back("call"); }, timing, [&] { calls.push_back("before"); });
  EXPECT_TRUE(has_elements(calls, {"call", "before", "call", "call", "before", "call", "call"}));
  EXPECT_THAT(seconds, SizeIs(2));
}

TEST(Timing, GivesTheMeanOfARow) {
  Timing timing;
  timing.number = 3;
  timing.repeat = 2;
  // Sleeps can be longer than asked for, never shorter.
  EXPECT_THAT(measure([] { wait(2); }, timing), AllOf(SizeIs(2), Each(AllOf(Ge(0.002), Lt(0.2)))));
}

TEST(Timing, MakesRowsLongerUntilTheyTakeLongEnough) {
  int calls = 0;
  Timing timing;
  timing.min_repeat_ms = 20;
  const auto seconds = measure([&] { ++calls, wait(1); }, timing);
  EXPECT_GE(calls, 1 + 1 + 2) << "warm-up, a row that is too short, a longer one";
  EXPECT_THAT(seconds, ElementsAre(Ge(0.001)));
}

TEST(Timing, PausesAfterEverySoManyRows) {
  Timing timing;
  timing.repeat = 4;
  timing.cooldown_interval_ms = 20;
  timing.repeats_to_cooldown = 2;
  const auto start = std::chrono::steady_clock::now();
  measure([] {}, timing);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(40));
}

TEST(Timing, FlushesBeforeRows) {
  Timing timing;
  timing.cache_flush_bytes = 1 << 20;
  EXPECT_THAT(measure([] {}, timing), SizeIs(1));
}

TEST(Timing, ReadsTheArgumentsOfEveryRelease) {
  const std::string name = "f";
  const std::vector<Value> values = {std::int64_t{9}, std::int64_t{1}, std::int64_t{2},
                                     std::int64_t{3}, std::int64_t{4}, std::int64_t{5},
                                     std::int64_t{6}};
  const Arguments arguments(name, values);
  const Timing of08 = timing_arguments(arguments, 1, 3);
  EXPECT_EQ(of08.number, 1);
  EXPECT_EQ(of08.repeat, 2);
  EXPECT_EQ(of08.min_repeat_ms, 3);
  EXPECT_EQ(of08.limit_zero_time_iterations, 100);
  const Timing of09 = timing_arguments(arguments, 1, 5);
  EXPECT_EQ(of09.cooldown_interval_ms, 4);
  EXPECT_EQ(of09.repeats_to_cooldown, 5);
  const Timing now = timing_arguments(arguments, 1, 6);
  EXPECT_EQ(now.limit_zero_time_iterations, 4);
  EXPECT_EQ(now.cooldown_interval_ms, 5);
  EXPECT_EQ(now.repeats_to_cooldown, 6);
  EXPECT_TRUE(throws_error([&] { timing_arguments(arguments, 1, 4); }, ErrorKind::kMismatch,
                           "takes 3, 5 or 6 numbers"));
}

TEST(Timing, RefusesWhatMakesNoSense) {
  const std::string name = "f";
  for (std::size_t i : {0, 1, 5}) {
    std::vector<Value> values(6, std::int64_t{1});
    values[i] = std::int64_t{0};
    EXPECT_TRUE(throws_error([&] { timing_arguments(Arguments(name, values), 0, 6); },
                             ErrorKind::kMismatch, "argument " + std::to_string(i)));
    values[i] = std::int64_t{1} << 32;
    EXPECT_TRUE(throws_error([&] { timing_arguments(Arguments(name, values), 0, 6); },
                             ErrorKind::kMismatch, "argument " + std::to_string(i)));
  }
}

}  // namespace
}  // namespace run_model::rpc
