#include <run_model/thread_pool.h>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include <run_model/error.h>
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

struct Calls {
  std::array<std::atomic<int>, 64> seen{};
  std::atomic<int> count{0};
};

int record(int index, int count, ThreadPool::Group*, void* data) {
  auto* calls = static_cast<Calls*>(data);
  calls->seen[static_cast<std::size_t>(index)]++;
  calls->count = count;
  return 0;
}

class PoolOf : public testing::TestWithParam<int> {
 protected:
  ThreadPool pool_{{.threads = GetParam()}};
};

TEST_P(PoolOf, RunsEveryTaskOnceInEveryLaunch) {
  for (int round = 1; round <= 200; ++round) {
    Calls calls;
    ASSERT_EQ(pool_.launch(record, &calls), 0);
    ASSERT_EQ(calls.count, GetParam());
    for (int i = 0; i < 64; ++i) {
      ASSERT_EQ(calls.seen[static_cast<std::size_t>(i)], i < GetParam() ? 1 : 0);
    }
  }
}

TEST_P(PoolOf, HonoursTheCountAlsoAboveTheThreads) {
  for (int count : {1, 2, 3, 7}) {
    Calls calls;
    ASSERT_EQ(pool_.launch(record, &calls, count), 0);
    EXPECT_EQ(calls.count, count);
    for (int i = 0; i < count; ++i) EXPECT_EQ(calls.seen[static_cast<std::size_t>(i)], 1);
  }
}

TEST_P(PoolOf, ReportsAFailingTask) {
  auto fail_last = [](int index, int count, ThreadPool::Group*, void*) {
    return index == count - 1 ? 7 : 0;
  };
  EXPECT_EQ(pool_.launch(fail_last, nullptr), 7);
  EXPECT_EQ(pool_.launch(fail_last, nullptr, 5), 7);
  Calls calls;
  EXPECT_EQ(pool_.launch(record, &calls), 0);
}

// Each task adds its part in phase one and reads everybody's sum in phase two: only a barrier that
// holds every task back makes all the sums equal.
struct Phases {
  std::atomic<int> sum{0};
  std::array<int, 16> read{};
};

TEST_P(PoolOf, BarrierSeparatesPhases) {
  auto task = [](int index, int count, ThreadPool::Group* group, void* data) {
    auto* phases = static_cast<Phases*>(data);
    for (int round = 1; round <= 50; ++round) {
      phases->sum += index + 1;
      ThreadPool::barrier(group);
      phases->read[static_cast<std::size_t>(index)] = phases->sum;
      ThreadPool::barrier(group);
      if (phases->read[static_cast<std::size_t>(index)] != round * count * (count + 1) / 2)
        return 1;
    }
    return 0;
  };
  for (int count : {0, 4}) {
    Phases phases;
    EXPECT_EQ(pool_.launch(task, &phases, count), 0);
  }
}

TEST_P(PoolOf, NestedLaunchRunsOneTask) {
  auto outer = [](int, int, ThreadPool::Group*, void* data) {
    Calls inner;
    auto* pool = static_cast<ThreadPool*>(data);
    for (int i = 0; i < 2; ++i) {
      if (pool->launch(record, &inner, 3) != 0) return 1;
    }
    return inner.count == 1 && inner.seen[0] == 2 && inner.seen[1] == 0 ? 0 : 2;
  };
  EXPECT_EQ(pool_.launch(outer, &pool_), 0);
}

TEST_P(PoolOf, TwoCallersTakeTurns) {
  std::atomic<int> failures{0};
  auto caller = [&] {
    for (int i = 0; i < 300; ++i) {
      Calls calls;
      if (pool_.launch(record, &calls) != 0 || calls.seen[0] != 1) ++failures;
    }
  };
  std::jthread other(caller);
  caller();
  other.join();
  EXPECT_EQ(failures, 0);
}

TEST_P(PoolOf, WakesAfterSleeping) {
  for (int i = 0; i < 3; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    Calls calls;
    EXPECT_EQ(pool_.launch(record, &calls), 0);
    EXPECT_EQ(calls.seen[0], 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Threads, PoolOf, testing::Values(1, 2, 3, 5));

TEST(ThreadPool, SleepsAtOnceWithoutSpin) {
  ThreadPool pool({.threads = 2, .spin_microseconds = 0});
  Calls calls;
  for (int i = 0; i < 100; ++i) pool.launch(record, &calls);
  EXPECT_EQ(calls.seen[1], 100);
}

// The child has the pool's memory and none of its threads.
TEST(ThreadPool, ComputesInAForkedChild) {
#if defined(__SANITIZE_THREAD__) || defined(EMULATED)
  GTEST_SKIP()
      << "the thread sanitizer and qemu-user let no child of a process with threads start any";
#endif
  auto pool = std::make_unique<ThreadPool>(ThreadPoolOptions{.threads = 3});
  Calls before;
  pool->launch(record, &before);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);
    Calls calls;
    for (int i = 0; i < 5; ++i) pool->launch(record, &calls);
    const bool all = calls.seen[0] == 5 && calls.seen[1] == 5 && calls.seen[2] == 5;
    pool.reset();
    ThreadPool fresh({.threads = 2});
    ::_exit(all && fresh.launch(record, &calls) == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  Calls after;
  EXPECT_EQ(pool->launch(record, &after), 0);
  EXPECT_EQ(after.seen[2], 1);
}

TEST(ThreadPool, RefusesImpossibleOptions) {
  EXPECT_THROW(ThreadPool({.threads = -1}), Error);
  EXPECT_THROW(ThreadPool({.threads = ThreadPool::kMaxThreads + 1}), Error);
  EXPECT_THROW(ThreadPool({.threads = 2, .worker_cpus = {1 << 20}}), Error);
  EXPECT_THROW(ThreadPool({.threads = 2, .worker_cpus = {-1}}), Error);
}

TEST(ThreadPool, PinsWorkersWhereAsked) {
  int cpu = allowed_cpus().back();
  ThreadPool pool({.threads = 2, .worker_cpus = {cpu}});
  struct Found {
    std::vector<int> cpus;
  } found;
  pool.launch(
      [](int index, int, ThreadPool::Group*, void* data) {
        if (index == 1) static_cast<Found*>(data)->cpus = allowed_cpus();
        return 0;
      },
      &found);
  EXPECT_EQ(found.cpus, std::vector<int>{cpu});
}

// setenv is safe here: CTest runs every case in a process of its own.
TEST(DefaultThreads, RespectsTheEnvironment) {
  setenv("OMP_NUM_THREADS", "5", 1);
  EXPECT_EQ(ThreadPool::default_threads(), 5);
  setenv("TVM_NUM_THREADS", "3", 1);
  EXPECT_EQ(ThreadPool::default_threads(), 3);
}

TEST(DefaultThreads, IgnoresNonsenseInTheEnvironment) {
  unsetenv("OMP_NUM_THREADS");
  unsetenv("TVM_NUM_THREADS");
  int automatic = ThreadPool::default_threads();
  EXPECT_GE(automatic, 1);
  EXPECT_LE(automatic, static_cast<int>(allowed_cpus().size()));
  for (const char* text : {"", "0", "-2", "two", "4x", "99999999999"}) {
    setenv("TVM_NUM_THREADS", text, 1);
    EXPECT_EQ(ThreadPool::default_threads(), automatic) << text;
  }
}

}  // namespace
}  // namespace run_model
