#include <run_model/thread_pool.h>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include <run_model/error.h>
#include "runtime/cpu/topology.h"
#include "runtime/threads/contention.h"

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

// The threads that ran tasks, with the caller's own.
TEST_P(PoolOf, MoreTasksThanThreadsNeedNoFurtherThreads) {
  struct Seen {
    std::mutex mutex;
    std::set<std::thread::id> threads;
  } seen;
  auto task = [](int, int, ThreadPool::Group*, void* data) {
    auto* into = static_cast<Seen*>(data);
    const std::lock_guard lock(into->mutex);
    into->threads.insert(std::this_thread::get_id());
    return 0;
  };
  for (int round = 0; round < 20; ++round) EXPECT_EQ(pool_.launch(task, &seen, 1000), 0);
  EXPECT_LE(seen.threads.size(), static_cast<std::size_t>(GetParam()));
}

// A task on another thread than the caller's lasts until all that are left have been run: none of
// the others is ever free for a second one.
struct HeldUp {
  std::thread::id caller = std::this_thread::get_id();
  Calls calls;
  std::atomic<int> done{0};
};

TEST_P(PoolOf, CallerRunsAllThatNobodyElseBegins) {
  auto task = [](int index, int count, ThreadPool::Group* group, void* data) {
    auto* held = static_cast<HeldUp*>(data);
    record(index, count, group, &held->calls);
    held->done++;
    const bool caller = std::this_thread::get_id() == held->caller;
    while (!caller && held->done < count) std::this_thread::yield();
    return 0;
  };
  for (int round = 0; round < 20; ++round) {
    HeldUp held;
    ASSERT_EQ(pool_.launch(task, &held, 40), 0);
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(held.calls.seen[i], i < 40 ? 1 : 0);
  }
}

// What a launch works on is gone when it has returned, as the closures of compiled functions are.
TEST_P(PoolOf, NobodyTouchesALaunchThatIsOver) {
  for (int round = 0; round < 2000; ++round) {
    const int count = 2 + round % 30;
    auto calls = std::make_unique<Calls>();
    ASSERT_EQ(pool_.launch(record, calls.get(), count), 0);
    for (std::size_t i = 0; i < 64; ++i) {
      ASSERT_EQ(calls->seen[i], i < static_cast<std::size_t>(count) ? 1 : 0) << round;
    }
  }
}

TEST_P(PoolOf, CutsLoopsFinerWhereOthersWantTheCpus) {
  note_contention(std::chrono::minutes(1));
  const int tasks = pool_.loop_tasks();
  EXPECT_EQ(tasks, GetParam() == 1 ? 1 : 4 * GetParam());
}

// Each task adds its part in phase one and reads everybody's sum in phase two: only a barrier that
// holds every task back makes all the sums equal.
struct Phases {
  std::atomic<int> sum{0};
  std::array<int, 64> read{};
};

TEST_P(PoolOf, BarrierSeparatesPhases) {
  auto task = [](int index, int count, ThreadPool::Group* group, void* data) {
    auto* phases = static_cast<Phases*>(data);
    for (int round = 1; round <= 20; ++round) {
      phases->sum += index + 1;
      ThreadPool::barrier(group);
      phases->read[static_cast<std::size_t>(index)] = phases->sum;
      ThreadPool::barrier(group);
      if (phases->read[static_cast<std::size_t>(index)] != round * count * (count + 1) / 2)
        return 1;
    }
    return 0;
  };
  for (int count : {0, 4, 19}) {
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

INSTANTIATE_TEST_SUITE_P(Threads, PoolOf, testing::Values(1, 2, 3, 4, 8, 16));

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
  // Workers that begin still allocate, and AddressSanitizer's allocator, other than glibc's, stays
  // locked in a child that is made meanwhile.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
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

// A barrier that cannot have all tasks running must neither hang nor let a wrong result through.
TEST(ThreadPool, ThrowsWhereABarrierGetsNoThreads) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(EMULATED)
  GTEST_SKIP() << "they need more memory than the limit leaves";
#endif
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::alarm(20);
    constexpr int kTasks = 64;  // more than the stacks that glibc keeps of threads that ended
    ThreadPool pool({.threads = 1});
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_AS, &none);
    std::atomic<int> refused{0};
    try {
      pool.launch(
          [](int, int, ThreadPool::Group* group, void* data) {
            if (!ThreadPool::barrier(group)) ++*static_cast<std::atomic<int>*>(data);
            return 0;
          },
          &refused, kTasks);
    } catch (const std::system_error&) {
      ::_exit(refused == kTasks ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
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
      [](int index, int, ThreadPool::Group* group, void* data) {
        ThreadPool::barrier(group);  // or one thread might run both
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
