#include "runtime/threads/contention.h"

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

TEST(WaitingShareTest, ShortTurnsOfOthersTellNothing) {
  WaitingShare waiting;
  ThreadTimes times;
  for (int i = 0; i < 100; ++i) {
    times.computed += 2'000;
    times.waited += 200;  // a tenth
    times.turns += 1;
    EXPECT_FALSE(waiting.go_on(times));
  }
}

TEST(WaitingShareTest, WakingUpIsNoWaiting) {
  WaitingShare waiting;
  ThreadTimes times;
  for (int i = 0; i < 1000; ++i) {
    times.computed += 100;
    times.waited += 40;
    times.turns += 1;
    EXPECT_FALSE(waiting.go_on(times));
  }
}

TEST(WaitingShareTest, HalfOfACpuIsSeenAfterAFewSlices) {
  WaitingShare waiting;
  ThreadTimes times;
  bool seen = false;
  for (int slice = 0; slice < 4; ++slice) {
    times.computed += 3'000;
    times.waited += 3'000;
    times.turns += 1;
    seen = waiting.go_on(times);
  }
  EXPECT_TRUE(seen);
  EXPECT_FALSE(waiting.go_on(times));  // a span of its own each time
  times.computed += WaitingShare::kSpan;
  EXPECT_FALSE(waiting.go_on(times));
}

TEST(ContentionTest, HoldsForAWhile) {
  note_contention(std::chrono::seconds(1));
  EXPECT_TRUE(cpus_are_contended());
  look_for_contention();
  EXPECT_TRUE(cpus_are_contended());
}

// In a thread of its own: the one of the tests before may have waited for a busy CPU, which it
// would tell of now. Its own start may have waited too, under an emulator: then it tells of that
// first.
TEST(ContentionTest, IsOverAtSomeTime) {
  std::thread([] {
    for (int tries = 0; tries < 3 && (tries == 0 || cpus_are_contended()); ++tries) {
      note_contention(std::chrono::milliseconds(1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1005));
      look_for_contention();
    }
    EXPECT_FALSE(cpus_are_contended());
  }).join();
}

TEST(WouldContend, CountsThoseThatWantACpuNow) {
  EXPECT_FALSE(would_contend("3.64 3.18 3.13 1/110 2584", 2, 2));
  EXPECT_TRUE(would_contend("0.00 0.01 0.05 2/110 2584", 2, 2));
  EXPECT_FALSE(would_contend("0.00 0.01 0.05 3/110 2584", 2, 4));
  EXPECT_TRUE(would_contend("0.00 0.01 0.05 12/110 2584", 2, 12));
}

TEST(WouldContend, SaysNoWhereNothingIsKnown) {
  for (const char* line : {"", "3.64 3.18 3.13", "/", "a/b", "1.0 1.0 1.0 99999999999/3 1"}) {
    EXPECT_FALSE(would_contend(line, 64, 1)) << line;
  }
}

}  // namespace
}  // namespace run_model
