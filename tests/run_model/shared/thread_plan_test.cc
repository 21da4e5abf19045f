#include "run_model/shared/thread_plan.h"

#include <gmock/gmock.h>
#include <sched.h>
#include <stdlib.h>

#include <thread>

#include "runtime/cpu/topology.h"
#include "tests/boards.h"
#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ThreadPlanTest : public testing::Test {
 protected:
  void SetUp() override {
    unsetenv("TVM_NUM_THREADS");
    unsetenv("OMP_NUM_THREADS");
  }
  void TearDown() override { SetUp(); }

  static ThreadPlan plan(const Board& board, const ThreadSettings& settings = {}) {
    return make_thread_plan(settings, board.cpus(), board.root());
  }
  static ThreadPlan plan(const Board& board, ClusterChoice cluster, int threads = 0) {
    return plan(board, ThreadSettings{.threads = threads, .cluster = cluster});
  }
  // "threads on cpus, cluster"
  static std::string text(const ThreadPlan& plan) {
    return std::to_string(plan.threads) + " on " + cpu_list_text(plan.cpus) +
           (plan.cluster.empty() ? "" : ", " + plan.cluster);
  }
};

TEST_F(ThreadPlanTest, OneKindOfCoreIsUsedWholeAndNotPinned) {
  EXPECT_EQ(text(plan(raspberry_pi_4())), "4 on 0-3");
  EXPECT_EQ(text(plan(pynq_z1())), "2 on 0-1");
  EXPECT_FALSE(plan(raspberry_pi_4()).restricted);
  EXPECT_THAT(plan(raspberry_pi_4()).notices, IsEmpty());
}

TEST_F(ThreadPlanTest, HyperThreadsShareACore) {
  EXPECT_EQ(text(plan(server_with_hyper_threads())), "4 on 0-7");
}

TEST_F(ThreadPlanTest, LittleCoresAreLeftOut) {
  EXPECT_EQ(text(plan(rk3399())), "2 on 4-5, big");
  EXPECT_EQ(text(plan(odroid_xu4())), "4 on 4-7, big");
  EXPECT_EQ(text(plan(snapdragon_865())), "4 on 4-7, big");
  EXPECT_EQ(text(plan(intel_13900k())), "8 on 0-15, big");
  EXPECT_TRUE(plan(rk3399()).restricted);
  EXPECT_THAT(plan(rk3399()).reason, HasSubstr("little"));
}

TEST_F(ThreadPlanTest, CoresOfNearlyTheSameStrengthAreUsedTogether) {
  const Board board(std::vector<BoardCpu>(2, {900, 0, 0}) + std::vector<BoardCpu>(2, {1024, 0, 0}));
  EXPECT_EQ(text(plan(board)), "4 on 0-3, all");
  EXPECT_EQ(text(plan(board, ClusterChoice::kBig)), "2 on 2-3, big");
}

TEST_F(ThreadPlanTest, MoreThreadsThanBigCoresTakeAllCpus) {
  EXPECT_EQ(text(plan(rk3399(), {.threads = 2})), "2 on 4-5, big");
  EXPECT_EQ(text(plan(rk3399(), {.threads = 3})), "3 on 0-5, all");
  EXPECT_FALSE(plan(rk3399(), {.threads = 3}).restricted);
}

TEST_F(ThreadPlanTest, ClustersOfTwo) {
  const Board board = rk3399();
  EXPECT_EQ(text(plan(board, ClusterChoice::kBig)), "2 on 4-5, big");
  EXPECT_EQ(text(plan(board, ClusterChoice::kPrime)), "2 on 4-5, prime");
  EXPECT_EQ(text(plan(board, ClusterChoice::kLittle)), "4 on 0-3, little");
  EXPECT_EQ(text(plan(board, ClusterChoice::kAll)), "6 on 0-5, all");
  const ThreadPlan middle = plan(board, ClusterChoice::kMiddle);
  EXPECT_EQ(text(middle), "2 on 4-5, big");
  EXPECT_THAT(middle.notices, ElementsAre(HasSubstr("no middle one")));
}

TEST_F(ThreadPlanTest, ClustersOfThree) {
  const Board board = snapdragon_865();
  EXPECT_EQ(text(plan(board, ClusterChoice::kBig)), "4 on 4-7, big");
  EXPECT_EQ(text(plan(board, ClusterChoice::kPrime)), "1 on 7, prime");
  EXPECT_EQ(text(plan(board, ClusterChoice::kMiddle)), "3 on 4-6, middle");
  EXPECT_EQ(text(plan(board, ClusterChoice::kLittle)), "4 on 0-3, little");
  EXPECT_EQ(text(plan(board, ClusterChoice::kAll)), "8 on 0-7, all");
}

TEST_F(ThreadPlanTest, AClusterOfAUniformMachineIsAllOfItWithANotice) {
  for (const ClusterChoice choice : {ClusterChoice::kBig, ClusterChoice::kLittle,
                                     ClusterChoice::kMiddle, ClusterChoice::kPrime}) {
    const ThreadPlan made = plan(raspberry_pi_4(), choice);
    EXPECT_EQ(text(made), "4 on 0-3");
    EXPECT_FALSE(made.restricted);
    EXPECT_THAT(made.notices, ElementsAre(HasSubstr("every CPU here")));
  }
  EXPECT_THAT(plan(raspberry_pi_4(), ClusterChoice::kAll).notices, IsEmpty());
}

TEST_F(ThreadPlanTest, ChosenCpus) {
  const ThreadPlan made = plan(rk3399(), ThreadSettings{.cpus = {0, 5}});
  EXPECT_EQ(text(made), "2 on 0,5");
  EXPECT_TRUE(made.restricted);
  EXPECT_EQ(text(plan(rk3399(), {.threads = 1, .cpus = {3}})), "1 on 3");
  EXPECT_FALSE(plan(pynq_z1(), ThreadSettings{.cpus = {0, 1}}).restricted);
}

TEST_F(ThreadPlanTest, RefusesCpusThatAreNotAllowed) {
  const Board board = rk3399();
  EXPECT_TRUE(
      throws_error([&] { make_thread_plan({.cpus = {1, 4, 9}}, {0, 2, 3, 4}, board.root()); },
                   ErrorKind::kUsage, "CPU 1,9, but this process may use only 0,2-4"));
}

TEST_F(ThreadPlanTest, ClustersAreMadeOfAllowedCpusOnly) {
  const Board board = snapdragon_865();
  const auto plan_with = [&](std::vector<int> allowed, ClusterChoice cluster) {
    return text(make_thread_plan({.cluster = cluster}, allowed, board.root()));
  };
  EXPECT_EQ(plan_with({0, 1}, ClusterChoice::kBig), "2 on 0-1");
  EXPECT_EQ(plan_with({0, 1, 4, 5}, ClusterChoice::kPrime), "2 on 4-5, prime");
}

TEST_F(ThreadPlanTest, NeverMoreThanTheQuota) {
  const Board board = snapdragon_865();
  board.set_quota("250000 100000");
  EXPECT_EQ(text(plan(board)), "3 on 4-7, big");
  EXPECT_THAT(plan(board).reason, HasSubstr("quota"));
  const ThreadPlan asked = plan(board, {.threads = 4});
  EXPECT_EQ(asked.threads, 4);
  EXPECT_THAT(asked.notices, ElementsAre(HasSubstr("under a quota of 3 CPUs")));
}

TEST_F(ThreadPlanTest, MoreThreadsThanCpusIsSaid) {
  EXPECT_TRUE(has_elements(plan(pynq_z1(), {.threads = 4}).notices,
                           {"4 threads share 2 CPUs: they will wait for each other"}));
}

TEST_F(ThreadPlanTest, TheEnvironmentSaysHowMany) {
  setenv("OMP_NUM_THREADS", "1", 1);
  EXPECT_EQ(plan(raspberry_pi_4()).threads, 1);
  setenv("TVM_NUM_THREADS", "3", 1);
  EXPECT_EQ(plan(raspberry_pi_4()).threads, 3);
  EXPECT_THAT(plan(raspberry_pi_4()).reason, HasSubstr("TVM_NUM_THREADS"));
  EXPECT_EQ(plan(raspberry_pi_4(), {.threads = 2}).threads, 2);
  EXPECT_EQ(text(plan(rk3399())), "3 on 0-5, all");
}

TEST_F(ThreadPlanTest, SpinIsThePoolsUnlessGiven) {
  EXPECT_EQ(plan(pynq_z1()).spin_microseconds, ThreadPoolOptions{}.spin_microseconds);
  EXPECT_EQ(plan(pynq_z1(), ThreadSettings{.spin_microseconds = 7}).spin_microseconds, 7);
}

TEST_F(ThreadPlanTest, ThreadsRunOnTheChosenCpusOnly) {
  // On a thread of its own, whose CPU mask no other test sees.
  std::thread([] {
    const int last = allowed_cpus().back();
    const auto pool = start_threads(make_thread_plan({.threads = 2, .cpus = {last}}));
    EXPECT_TRUE(has_elements(allowed_cpus(), {last}));
    EXPECT_EQ(pool->threads(), 2);
    std::vector<int> seen(2, -1);
    const auto note_cpu = [](int index, int, ThreadPool::Group* group, void* data) {
      ThreadPool::barrier(group);  // or one thread might run both
      const std::vector<int> cpus = allowed_cpus();
      (*static_cast<std::vector<int>*>(data))[static_cast<std::size_t>(index)] =
          cpus.size() == 1 ? cpus.front() : -1;
      return 0;
    };
    pool->launch(note_cpu, &seen);
    EXPECT_TRUE(has_elements(seen, {last, last}));
  }).join();
}

}  // namespace
}  // namespace run_model
