#include "runtime/cpu/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <numeric>
#include <thread>

#include "tests/temporary_folder.h"

namespace run_model {
namespace {

using testing::ElementsAre;
using testing::Optional;

namespace fs = std::filesystem;

// A directory tree that stands for "/", removed afterwards.
class FakeRoot : public testing::Test {
 protected:
  void write(const fs::path& path, const std::string& text) {
    folder_.write(path.native(), text + '\n');
  }
  void write_siblings(int cpu, const std::string& siblings) {
    write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list",
          siblings);
  }

  const TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
};

using PhysicalCores = FakeRoot;
using CgroupLimit = FakeRoot;

TEST_F(PhysicalCores, CountsHyperThreadsOnce) {
  write_siblings(0, "0,2");
  write_siblings(1, "1,3");
  write_siblings(2, "0,2");
  write_siblings(3, "1,3");
  EXPECT_EQ(physical_cores(std::vector<int>{0, 1, 2, 3}, root_), 2);
  EXPECT_EQ(physical_cores(std::vector<int>{0, 2}, root_), 1);
  EXPECT_EQ(physical_cores(std::vector<int>{2, 3}, root_), 2);
}

TEST_F(PhysicalCores, EveryCpuIsACoreWithoutHyperThreads) {
  for (int cpu = 0; cpu < 4; ++cpu) write_siblings(cpu, std::to_string(cpu));
  EXPECT_EQ(physical_cores(std::vector<int>{0, 1, 2, 3}, root_), 4);
}

TEST_F(PhysicalCores, CountsCpusWhereSysfsTellsNothing) {
  EXPECT_EQ(physical_cores(std::vector<int>{0, 5, 7}, root_), 3);
}

TEST_F(CgroupLimit, NoneWithoutCgroups) { EXPECT_EQ(cgroup_cpu_limit(root_), std::nullopt); }

TEST_F(CgroupLimit, Version2TakesTheTightestLevelRoundedUp) {
  write("proc/self/cgroup", "0::/pod/container");
  write("sys/fs/cgroup/pod/cpu.max", "250000 100000");
  write("sys/fs/cgroup/pod/container/cpu.max", "max 100000");
  EXPECT_EQ(cgroup_cpu_limit(root_), 3);
  write("sys/fs/cgroup/pod/container/cpu.max", "50000 100000");
  EXPECT_EQ(cgroup_cpu_limit(root_), 1);
}

TEST_F(CgroupLimit, Version2InAContainerReadsTheMountItself) {
  write("proc/self/cgroup", "0::/not/visible/here");
  write("sys/fs/cgroup/cpu.max", "200000 100000");
  EXPECT_EQ(cgroup_cpu_limit(root_), 2);
}

TEST_F(CgroupLimit, Version1) {
  write("proc/self/cgroup", "5:memory:/x\n4:cpu,cpuacct:/x");
  write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "-1");
  write("sys/fs/cgroup/cpu/x/cpu.cfs_period_us", "100000");
  EXPECT_EQ(cgroup_cpu_limit(root_), std::nullopt);
  write("sys/fs/cgroup/cpu/x/cpu.cfs_quota_us", "150000");
  EXPECT_EQ(cgroup_cpu_limit(root_), 2);
}

// Two threads on a quota of one and a half CPUs: what one of them spins away, the other lacks.
TEST_F(CgroupLimit, LastsForFewerThreadsThanItIsRoundedUpTo) {
  const std::vector<int> cpus{0, 1, 2, 3};
  EXPECT_EQ(sustained_threads(cpus, root_), 4);
  write("proc/self/cgroup", "0::/");
  write("sys/fs/cgroup/cpu.max", "150000 100000");
  EXPECT_EQ(cgroup_cpu_limit(root_), 2);
  EXPECT_EQ(sustained_threads(cpus, root_), 1);
  write("sys/fs/cgroup/cpu.max", "300000 100000");
  EXPECT_EQ(sustained_threads(cpus, root_), 3);
  EXPECT_EQ(sustained_threads(std::vector<int>{0, 1}, root_), 2);
}

TEST_F(CgroupLimit, NonsenseIsNoLimit) {
  write("proc/self/cgroup", "0::/");
  for (const char* text :
       {"", "max", "0 100000", "5 0", "x y", "-5 -5", "99999999999999999999 1"}) {
    write("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(cgroup_cpu_limit(root_), std::nullopt) << text;
  }
}

TEST(AllowedCpus, AgreesWithTheStandardLibrary) {
  EXPECT_EQ(allowed_cpus().size(), std::thread::hardware_concurrency());
}

TEST(CpuList, Parses) {
  EXPECT_THAT(parse_cpu_list("3"), Optional(ElementsAre(3)));
  EXPECT_THAT(parse_cpu_list("0,2-4"), Optional(ElementsAre(0, 2, 3, 4)));
  EXPECT_THAT(parse_cpu_list(" 4-5,0,4\n"), Optional(ElementsAre(0, 4, 5)));
  EXPECT_THAT(parse_cpu_list("7-7"), Optional(ElementsAre(7)));
}

TEST(CpuList, RefusesWhatIsNone) {
  for (const char* text : {"", " ", ",", "1,", ",1", "a", "1-", "-1", "3-2", "1--2", "1 2", "0x1",
                           "65536", "1-99999999999", "1;2"}) {
    EXPECT_EQ(parse_cpu_list(text), std::nullopt) << text;
  }
}

TEST(CpuList, TextIsTheShortestList) {
  EXPECT_EQ(cpu_list_text(std::vector<int>{}), "");
  EXPECT_EQ(cpu_list_text(std::vector<int>{5}), "5");
  EXPECT_EQ(cpu_list_text(std::vector<int>{0, 1}), "0-1");
  EXPECT_EQ(cpu_list_text(std::vector<int>{0, 2, 3, 4, 8}), "0,2-4,8");
}

TEST(CpuList, TextIsReadBack) {
  for (unsigned bits = 1; bits < 256; ++bits) {
    std::vector<int> cpus;
    for (int cpu = 0; cpu < 8; ++cpu) {
      if (bits >> cpu & 1) cpus.push_back(cpu);
    }
    EXPECT_EQ(parse_cpu_list(cpu_list_text(cpus)), cpus) << bits;
  }
}

}  // namespace
}  // namespace run_model
