// The kinds of cores of a machine: big and little ones of Arm boards, P and E cores of PCs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace run_model {

// Cores of about the same strength.
struct CpuCluster {
  std::vector<int> cpus;      // ascending
  double strength = 1.0;      // of its strongest core, as a share of the strongest of all
  int capacity = 0;           // that core's by the kernel's measure, at most 1024; 0: not told
  std::uint64_t max_khz = 0;  // highest frequency of any of them; 0: not told
};

// `cpus` sorted into clusters, weakest first; at least one where `cpus` is not empty. The strength
// of a CPU is, from <root>/sys/devices/system/cpu/cpu<N>/:
//   cpu_capacity                where all of them have one and they differ (a device tree without
//                               capacities gives every core 1024); else
//   cpufreq/cpuinfo_max_freq    halved for Arm's in-order cores, which regs/identification/midr_el1
//                               tells, since big and little ones may run at the same frequency;
//                               else
//   half for those in <root>/sys/devices/cpu_atom/cpus, Intel's E cores.
// Cores within 8 % of a cluster's strongest belong to it: a favoured core of a PC, a few percent
// faster than its like, makes no cluster of its own, while a phone's prime core does. Where nothing
// is told, or not for all CPUs, all are one cluster: cores of another package, or that share
// another cache, are not weaker for it.
std::vector<CpuCluster> cpu_clusters(std::span<const int> cpus,
                                     const std::filesystem::path& root = "/");

}  // namespace run_model
