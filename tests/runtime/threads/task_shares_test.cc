#include "runtime/threads/task_shares.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace run_model {
namespace {

std::vector<int> all_of(TaskShares& shares, int thread) {
  std::vector<int> taken;
  for (int index = shares.take(thread); index >= 0; index = shares.take(thread)) {
    taken.push_back(index);
  }
  return taken;
}

TEST(TaskSharesTest, NothingIsLeftBeforeTheFirstTasks) {
  TaskShares shares(3);
  EXPECT_EQ(shares.take(0), -1);
  EXPECT_EQ(shares.take(2), -1);
}

TEST(TaskSharesTest, AThreadBeginsWithItsOwnShareAndGoesOnWithTheNext) {
  TaskShares shares(3);
  shares.give_out(7);  // shares 0 1, 2 3, 4 5 6
  EXPECT_EQ(shares.take(2), 4);
  EXPECT_EQ(shares.take(0), 0);
  EXPECT_EQ(all_of(shares, 1), (std::vector<int>{2, 3, 5, 6, 1}));
  EXPECT_EQ(all_of(shares, 0), std::vector<int>{});
}

TEST(TaskSharesTest, FewerTasksThanThreads) {
  TaskShares shares(4);
  shares.give_out(1);
  EXPECT_EQ(all_of(shares, 0), std::vector<int>{0});
  shares.give_out(4);
  for (int thread = 0; thread < 4; ++thread) EXPECT_EQ(shares.take(thread), thread);
}

// Threads that never look at what round it is take every task of every round once.
TEST(TaskSharesTest, EachTaskIsTakenOnceWhileRoundsGoOn) {
  constexpr int kThreads = 3;
  constexpr int kTasks = 5;
  TaskShares shares(kThreads);
  std::atomic<bool> over{false};
  std::atomic<int> left{0};
  std::vector<std::atomic<int>> counts(kTasks);
  auto take = [&](int thread) {
    const int index = shares.take(thread);
    if (index < 0) {
      std::this_thread::yield();
      return;
    }
    counts[static_cast<std::size_t>(index)]++;
    left--;
  };
  std::vector<std::jthread> threads;
  for (int thread = 1; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      while (!over) take(thread);
    });
  }
  for (int round = 1; round <= 2000; ++round) {
    left = kTasks;
    shares.give_out(kTasks);
    while (left > 0) take(0);
    for (const std::atomic<int>& count : counts) ASSERT_EQ(count, round);
  }
  over = true;
}

}  // namespace
}  // namespace run_model
