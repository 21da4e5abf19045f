#include "run_model/run_model/machine/sweep.h"

#include <gmock/gmock.h>
#include <stdlib.h>

#include "tests/boards.h"
#include "tests/has_elements.h"

namespace run_model {
namespace {

using testing::HasSubstr;

std::vector<std::string> sweep_flags_of(const Board& board, const ThreadSettings& settings = {}) {
  std::vector<std::string> flags;
  for (const SweepRow& row : sweep_settings(settings, board.cpus(), board.root())) {
    flags.push_back(row.flags);
  }
  return flags;
}

TEST(SweepSettings, EachNumberOfThreads) {
  EXPECT_TRUE(has_elements(
      sweep_flags_of(raspberry_pi_4()),
      {"--threads 1", "--threads 2", "--threads 3", "--threads 4", "--threads 4 --spin 0"}));
}

TEST(SweepSettings, OneCpuIsOneSetting) {
  EXPECT_TRUE(has_elements(sweep_flags_of(Board(std::vector<BoardCpu>(1))), {"--threads 1"}));
}

TEST(SweepSettings, HyperThreadsAreTriedOnceAllTogether) {
  EXPECT_TRUE(has_elements(sweep_flags_of(server_with_hyper_threads()),
                           {"--threads 1", "--threads 2", "--threads 3", "--threads 4",
                            "--threads 8", "--threads 8 --spin 0"}));
}

TEST(SweepSettings, ManyCoresInPowersOfTwo) {
  EXPECT_TRUE(
      has_elements(sweep_flags_of(Board(std::vector<BoardCpu>(24)), {.spin_microseconds = 5}),
                   {"--threads 1 --spin 5", "--threads 2 --spin 5", "--threads 3 --spin 5",
                    "--threads 4 --spin 5", "--threads 5 --spin 5", "--threads 6 --spin 5",
                    "--threads 7 --spin 5", "--threads 8 --spin 5", "--threads 16 --spin 5",
                    "--threads 24 --spin 5"}));
}

TEST(SweepSettings, EachClusterThenAll) {
  EXPECT_TRUE(has_elements(
      sweep_flags_of(rk3399()),
      {"--threads 1 --cluster big", "--threads 2 --cluster big",
       "--threads 2 --cluster big --spin 0", "--threads 1 --cluster little",
       "--threads 2 --cluster little", "--threads 3 --cluster little",
       "--threads 4 --cluster little", "--threads 4 --cluster little --spin 0",
       "--threads 3 --cluster all", "--threads 4 --cluster all", "--threads 5 --cluster all",
       "--threads 6 --cluster all", "--threads 6 --cluster all --spin 0"}));
}

TEST(SweepSettings, ThreeClusters) {
  const std::vector<std::string> flags = sweep_flags_of(snapdragon_865(), {.threads = 2});
  EXPECT_TRUE(
      has_elements(flags, {"--threads 1 --cluster prime", "--threads 1 --cluster middle",
                           "--threads 2 --cluster middle", "--threads 2 --cluster middle --spin 0",
                           "--threads 2 --cluster big", "--threads 2 --cluster big --spin 0",
                           "--threads 1 --cluster little", "--threads 2 --cluster little",
                           "--threads 2 --cluster little --spin 0"}));
}

TEST(SweepSettings, OnlyWhereAskedFor) {
  EXPECT_TRUE(has_elements(sweep_flags_of(rk3399(), {.cluster = ClusterChoice::kBig}),
                           {"--threads 1 --cluster big", "--threads 2 --cluster big",
                            "--threads 2 --cluster big --spin 0"}));
  EXPECT_TRUE(has_elements(
      sweep_flags_of(rk3399(), {.cpus = {0, 5}}),
      {"--threads 1 --cpus 0,5", "--threads 2 --cpus 0,5", "--threads 2 --cpus 0,5 --spin 0"}));
  EXPECT_THAT(sweep_flags_of(rk3399(), {.cluster = ClusterChoice::kMiddle}).front(),
              HasSubstr("--cluster big"));
}

TEST(SweepSettings, NoMoreThanTheQuota) {
  const Board board = raspberry_pi_4();
  board.set_quota("150000 100000");
  EXPECT_TRUE(
      has_elements(sweep_flags_of(board), {"--threads 1", "--threads 2", "--threads 2 --spin 0"}));
}

TEST(SweepSettings, TheEnvironmentDoesNotDecide) {
  setenv("TVM_NUM_THREADS", "1", 1);
  const auto flags = sweep_flags_of(pynq_z1());
  unsetenv("TVM_NUM_THREADS");
  EXPECT_TRUE(has_elements(flags, {"--threads 1", "--threads 2", "--threads 2 --spin 0"}));
}

SweepRow row(int threads, double median, double half_width, double cpu) {
  SweepRow made;
  made.plan.threads = threads;
  made.flags = "--threads " + std::to_string(threads);
  made.run.median = median;
  made.run.interval = MedianInterval{median - half_width, median + half_width};
  made.cpu_per_run = cpu;
  return made;
}

std::size_t recommended(const std::vector<SweepRow>& rows) {
  ThreadSweep sweep;
  sweep.rows = rows;
  recommend(sweep);
  EXPECT_NE(sweep.why, "");
  return sweep.recommended;
}

TEST(Recommend, TheFastestWhereTheOthersAreClearlySlower) {
  EXPECT_EQ(recommended({row(1, 8, 0.1, 8), row(2, 4.4, 0.1, 8.8), row(4, 2.5, 0.1, 10)}), 2U);
}

TEST(Recommend, FewerThreadsThatAreAsFast) {
  EXPECT_EQ(recommended({row(1, 8, 0.1, 8), row(2, 4.05, 0.01, 8.8), row(4, 4, 0.01, 15)}), 1U);
  // Beyond 2 % only where the intervals overlap, and never beyond 10 %.
  EXPECT_EQ(recommended({row(2, 4.3, 0.2, 8), row(4, 4, 0.2, 8)}), 0U);
  EXPECT_EQ(recommended({row(2, 4.3, 0.1, 8), row(4, 4, 0.1, 8)}), 1U);
  EXPECT_EQ(recommended({row(2, 4.5, 9, 8), row(4, 4, 9, 8)}), 1U);
}

TEST(Recommend, LessCpuTimeAmongEquals) {
  EXPECT_EQ(recommended({row(2, 4, 0.1, 9), row(2, 4.01, 0.1, 8)}), 1U);
  EXPECT_EQ(recommended({row(2, 4, 0.1, 8), row(2, 4.01, 0.1, 9)}), 0U);
}

TEST(Recommend, SaysWhy) {
  ThreadSweep sweep;
  sweep.rows = {row(1, 4, 0.1, 4)};
  recommend(sweep);
  EXPECT_EQ(sweep.why, "one thread is the fastest");
  sweep.rows = {row(1, 4.01, 0.1, 4), row(2, 4, 0.1, 8)};
  recommend(sweep);
  EXPECT_EQ(sweep.why, "as fast as the fastest (--threads 2) within noise, with fewer threads");
}

}  // namespace
}  // namespace run_model
