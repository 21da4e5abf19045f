#include "run_model/run_model/machine/context.h"

#include <gmock/gmock.h>

#include "run_model/run_model/machine/watch.h"
#include "runtime/cpu/topology.h"
#include "tests/temporary_folder.h"

namespace run_model {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The sysfs of a machine that has this process's first CPU.
class MachineTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) { root_.write(path, text + "\n"); }
  void write_cpu(const std::string& path, const std::string& text) {
    write("sys/devices/system/cpu/cpu" + std::to_string(allowed_cpus().front()) + "/" + path, text);
  }
  MachineContext describe(MachineDetail detail = MachineDetail::kFull) {
    return describe_machine(detail, root_.path());
  }
  std::vector<std::string> warnings_after(const MachineSample& before) {
    MachineContext context;
    compare_samples(before, sample_machine(root_.path()), context);
    return context.warnings;
  }
  MachineSample sample() { return sample_machine(root_.path()); }

  TemporaryFolder root_;
};

TEST_F(MachineTest, NothingToldIsNothingSaid) {
  const MachineContext context = describe();
  EXPECT_EQ(context.cpu, "");
  EXPECT_EQ(context.board, "");
  EXPECT_EQ(context.governor, "");
  EXPECT_EQ(context.load_average, std::nullopt);
  EXPECT_EQ(context.max_khz, std::nullopt);
  EXPECT_EQ(context.boost, std::nullopt);
  EXPECT_THAT(context.caches, IsEmpty());
  EXPECT_THAT(context.warnings, IsEmpty());
  EXPECT_EQ(context.allowed_cpus, static_cast<int>(allowed_cpus().size()));
  EXPECT_NE(context.architecture, "");
  EXPECT_THAT(context.kernel, HasSubstr("Linux"));
}

TEST_F(MachineTest, DescribesABoard) {
  root_.write("proc/device-tree/model", std::string("Raspberry Pi 4 Model B Rev 1.4\0", 31));
  write("proc/loadavg", "0.15 0.20 0.30 1/100 999");
  write_cpu("cpufreq/scaling_governor", "performance");
  write_cpu("cpufreq/scaling_min_freq", "600000");
  write_cpu("cpufreq/scaling_max_freq", "1500000");
  write_cpu("cpufreq/cpuinfo_max_freq", "1500000");
  write_cpu("cpufreq/scaling_cur_freq", "1500000");
  write_cpu("cache/index0/level", "1");
  write_cpu("cache/index0/type", "Data");
  write_cpu("cache/index0/size", "32K");
  write_cpu("cache/index0/shared_cpu_list", "0");
  write("sys/devices/system/cpu/cpufreq/boost", "0");
  const MachineContext context = describe();
  EXPECT_EQ(context.board, "Raspberry Pi 4 Model B Rev 1.4");
  EXPECT_EQ(context.load_average, 0.15);
  EXPECT_EQ(context.governor, "performance");
  EXPECT_EQ(context.min_khz, 600'000U);
  EXPECT_EQ(context.max_khz, 1'500'000U);
  EXPECT_EQ(context.highest_khz, 1'500'000U);
  EXPECT_EQ(context.boost, false);
  ASSERT_EQ(context.caches.size(), 1U);
  EXPECT_EQ(context.caches[0].bytes, 32U << 10);
  EXPECT_THAT(context.warnings, IsEmpty());
}

TEST_F(MachineTest, BriefLeavesOutWhatOnlyAMeasurementNeeds) {
  write_cpu("cpufreq/scaling_max_freq", "1500000");
  write_cpu("cache/index0/level", "1");
  const MachineContext context = describe(MachineDetail::kBrief);
  EXPECT_EQ(context.max_khz, std::nullopt);
  EXPECT_THAT(context.caches, IsEmpty());
}

TEST_F(MachineTest, WarnsOfWhatSpoilsAMeasurement) {
  write_cpu("cpufreq/scaling_governor", "schedutil");
  write_cpu("cpufreq/scaling_max_freq", "1200000");
  write_cpu("cpufreq/cpuinfo_max_freq", "1500000");
  write("proc/loadavg", "3.14 1 1 1/1 1");
  write("sys/devices/system/cpu/online", "0-3");
  write("proc/cpuinfo", "flags\t: fpu hypervisor sse");
  EXPECT_THAT(describe().warnings,
              ElementsAre(HasSubstr("limited to 1200 MHz, it could be 1500 MHz"),
                          HasSubstr("governor is schedutil, not performance"),
                          HasSubstr("load average is 3.1 on 4 CPUs"),
                          HasSubstr("virtual machine (hypervisor)")));
}

TEST_F(MachineTest, ALittleLoadIsNoWarning) {
  write("sys/devices/system/cpu/online", "0-63");
  write("proc/loadavg", "3.00 1 1 1/1 1");
  EXPECT_THAT(describe().warnings, IsEmpty());
}

TEST_F(MachineTest, BoostByIntelsDriver) {
  write("sys/devices/system/cpu/intel_pstate/no_turbo", "0");
  EXPECT_EQ(describe().boost, true);
}

TEST_F(MachineTest, AQuietMeasurementHasNoWarning) {
  write_cpu("cpufreq/scaling_cur_freq", "1500000");
  write_cpu("thermal_throttle/core_throttle_count", "3");
  write("sys/class/thermal/thermal_zone0/temp", "55000");
  write("proc/stat", "cpu  10 0 10 100 0 0 0 5 0 0");
  const MachineSample before = sample();
  EXPECT_EQ(before.hottest, 55.0);
  EXPECT_EQ(before.cpu_throttled, 3U);
  EXPECT_EQ(before.stolen_ticks, 5U);
  EXPECT_EQ(before.all_ticks, 125U);
  write_cpu("cpufreq/scaling_cur_freq", "1490000");
  EXPECT_THAT(warnings_after(before), IsEmpty());
}

TEST_F(MachineTest, WarnsOfWhatChanged) {
  write_cpu("cpufreq/scaling_cur_freq", "1500000");
  write_cpu("thermal_throttle/core_throttle_count", "3");
  write("sys/class/thermal/thermal_zone0/temp", "55000");
  write("sys/class/thermal/thermal_zone1/temp", "40000");
  write("proc/stat", "cpu  10 0 10 100 0 0 0 5 0 0");
  write("proc/self/cgroup", "0::/box");
  write("sys/fs/cgroup/box/cpu.stat", "usage_usec 1\nnr_throttled 2");
  write("sys/devices/platform/soc/soc:firmware/get_throttled", "0");
  const MachineSample before = sample();
  write_cpu("cpufreq/scaling_cur_freq", "600000");
  write_cpu("thermal_throttle/core_throttle_count", "4");
  write("sys/class/thermal/thermal_zone1/temp", "82000");
  write("proc/stat", "cpu  60 0 10 100 0 0 0 55 0 0");
  write("sys/fs/cgroup/box/cpu.stat", "usage_usec 1\nnr_throttled 9");
  write("sys/devices/platform/soc/soc:firmware/get_throttled", "50005");
  EXPECT_THAT(warnings_after(before),
              ElementsAre(HasSubstr("from 1500 MHz to 600 MHz"), HasSubstr("slowed itself down"),
                          HasSubstr("board slowed the CPU down while measuring"),
                          HasSubstr("quota of CPU time"), HasSubstr("from 55 to 82 degrees"),
                          HasSubstr("took 50 % of the CPU time")));
}

TEST_F(MachineTest, WhatTheBoardDidBeforeIsSaidAsSuch) {
  write("sys/devices/platform/soc/soc:firmware/get_throttled", "80000");
  write("sys/class/thermal/thermal_zone0/temp", "85000");
  EXPECT_THAT(warnings_after(sample()),
              ElementsAre(HasSubstr("since it was started"), HasSubstr("sensor is at 85 degrees")));
}

}  // namespace
}  // namespace run_model
