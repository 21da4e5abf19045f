// The kinds of cores of a machine: big and little ones of Arm boards, P and E cores of PCs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace run_model {

// Cores of about the same strength.
struct CpuCluster {
  std::vector<int> cpus;       // ascending
  int capacity = 0;            // the kernel's measure of the strongest, 1024 for the machine's best; 0: not told
  std::uint64_t max_khz = 0;   // highest frequency of any of them; 0: not told
};

// `cpus` sorted into clusters, weakest first; at least one where `cpus` is not empty. The strength of
// a CPU is, from <root>/sys/devices/system/cpu/cpu<N>/:
//   cpu_capacity                                  where the kernel tells it for all of them; else
//   cpufreq/cpuinfo_max_freq                      halved for Arm's in-order cores (which those are,
//                                                 regs/identification/midr_el1 tells), since big and
//                                                 little ones may run at the same frequency; else
//   whether it is in <root>/sys/devices/cpu_atom/cpus  (Intel's E cores).
// Cores within 8 % of a cluster's strongest belong to it: a favoured core of a PC, a few percent
// faster than its like, makes no cluster of its own, while a phone's prime core does. Where nothing is
// told, or not for all CPUs, all are one cluster: being of another package or of another group that
// shares a cache says nothing about strength.
std::vector<CpuCluster> cpu_clusters(std::span<const int> cpus,
                                     const std::filesystem::path& root = "/");

}  // namespace run_model
