#include "runtime/cpu/placement.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <future>
#include <thread>
#include <vector>

#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

using Cpus = std::vector<int>;

Cpus cpus_of(std::thread& thread) {
  cpu_set_t set;
  EXPECT_EQ(pthread_getaffinity_np(thread.native_handle(), sizeof(set), &set), 0);
  Cpus cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// A thread that does one thing after another when it is told to.
class Worker {
 public:
  void run(const std::function<void()>& what) {
    std::packaged_task<void()> task(what);
    std::future<void> done = task.get_future();
    tasks_.set_value(std::move(task));
    done.wait();
  }
  std::thread start() {
    return std::thread([this] { tasks_.get_future().get()(); });
  }

 private:
  std::promise<std::packaged_task<void()>> tasks_;
};

class PlacementTest : public testing::Test {
 protected:
  void SetUp() override {
    if (allowed_.size() < 2) GTEST_SKIP() << "needs two CPUs";
  }
  void TearDown() override {
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      if (!told_[i]) workers_[i].run([] {});
      threads_[i].join();
    }
    restrict_to_cpus(allowed_);
  }

  void go_to(int cpu) {
    restrict_to_cpus(std::array{cpu});
    restrict_to_cpus(allowed_);
  }
  // Linux may move a caller that has others to go to.
  void keep_clear_of(int cpu) {
    restrict_to_cpus(std::array{cpu});
    placement_.keep_clear_of_caller();
    restrict_to_cpus(allowed_);
  }
  Cpus all_but(int cpu) const {
    Cpus others = allowed_;
    others.erase(std::remove(others.begin(), others.end(), cpu), others.end());
    return others;
  }
  // Whether the caller comes from the last CPU to this one; Linux may move it meanwhile, but not
  // every time.
  bool settles_on(int cpu) {
    for (int i = 0; i < 10; ++i) {
      go_to(last_);
      placement_.settle_caller();
      if (::sched_getcpu() == cpu) return true;
    }
    return false;
  }
  void note_from(int cpu) {
    told_[0] = true;
    workers_[0].run([&] {
      restrict_to_cpus(std::array{cpu});
      placement_.note(0);
    });
  }

  const Cpus allowed_ = allowed_cpus();
  const int first_ = allowed_.front();
  const int last_ = allowed_.back();
  Placement placement_{2};
  std::array<Worker, 2> workers_;
  std::array<bool, 2> told_{};
  std::array<std::thread, 2> threads_{workers_[0].start(), workers_[1].start()};
};

TEST_F(PlacementTest, KeepsWorkersClearOfTheCallerUntilTheyAreReleased) {
  placement_.keep_clear_of_caller();
  EXPECT_EQ(cpus_of(threads_[0]), allowed_) << "before it begins";
  placement_.begin(threads_);
  EXPECT_EQ(cpus_of(threads_[1]), allowed_);
  keep_clear_of(first_);
  for (std::thread& thread : threads_) EXPECT_EQ(cpus_of(thread), all_but(first_));
  placement_.release();
  for (std::thread& thread : threads_) EXPECT_EQ(cpus_of(thread), allowed_);
}

TEST_F(PlacementTest, FollowsACallerThatMovesButNotAtEveryTurn) {
  placement_.begin(threads_);
  keep_clear_of(first_);
  keep_clear_of(last_);
  const Cpus at_once = cpus_of(threads_[0]);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  keep_clear_of(last_);
  EXPECT_EQ(cpus_of(threads_[0]), all_but(last_));
  // A machine that halts between the two calls changes it at the first.
  EXPECT_TRUE(at_once == all_but(first_) || at_once == all_but(last_));
}

TEST_F(PlacementTest, CallerGoesBackWhereAWorkerIsInItsPlaceOnly) {
  placement_.begin(threads_);
  keep_clear_of(first_);
  EXPECT_TRUE(settles_on(last_)) << "no worker was seen there";
  note_from(last_);
  EXPECT_TRUE(settles_on(first_));
  EXPECT_EQ(allowed_cpus(), allowed_);
}

TEST_F(PlacementTest, CallerStaysWhereItMayNotGoBack) {
  placement_.begin(threads_);
  keep_clear_of(first_);
  note_from(last_);
  restrict_to_cpus(std::array{last_});
  placement_.settle_caller();
  EXPECT_EQ(allowed_cpus(), Cpus{last_});
}

TEST_F(PlacementTest, WorkersWithOneCpuStayThere) {
  for (std::thread& thread : threads_) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first_, &one);
    ASSERT_EQ(pthread_setaffinity_np(thread.native_handle(), sizeof(one), &one), 0);
  }
  placement_.begin(threads_);
  keep_clear_of(first_);
  EXPECT_EQ(cpus_of(threads_[0]), Cpus{first_});
}

}  // namespace
}  // namespace run_model
