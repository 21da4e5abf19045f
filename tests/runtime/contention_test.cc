#include "runtime/contention.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace run_model {
namespace {

TEST(PreemptionsTest, OneNowAndThenTellsNothing) {
  Preemptions preemptions;
  EXPECT_FALSE(preemptions.go_on(0, 0));
  std::int64_t now = 5'000;
  for (long count = 1; count < 10; ++count, now += Preemptions::kWindow) {
    EXPECT_FALSE(preemptions.go_on(now, count));
    EXPECT_FALSE(preemptions.go_on(now + 2'000, count));
  }
}

TEST(PreemptionsTest, TwoWithinAFewSlicesGoOn) {
  Preemptions preemptions;
  EXPECT_FALSE(preemptions.go_on(1'000, 3));
  EXPECT_FALSE(preemptions.go_on(4'000, 3));
  EXPECT_TRUE(preemptions.go_on(7'000, 4));
  EXPECT_FALSE(preemptions.go_on(9'000, 4));
  EXPECT_TRUE(preemptions.go_on(12'000, 7));
}

TEST(ContentionTest, HoldsForAWhile) {
  note_contention(std::chrono::seconds(1));
  EXPECT_TRUE(cpus_are_contended());
  look_for_contention();
  EXPECT_TRUE(cpus_are_contended());
}

TEST(ContentionTest, IsOverAtSomeTime) {
  note_contention(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(1005));
  look_for_contention();
  EXPECT_FALSE(cpus_are_contended());
}

}  // namespace
}  // namespace run_model
