// What one has to know about a machine to judge a measured time. Nothing of it is ever changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cpu/caches.h"
#include "runtime/cpu/clusters.h"

namespace run_model {

// kBrief reads a few small files for each CPU, well under a millisecond on a board; kFull adds
// caches, frequencies and the hint of a virtual machine.
enum class MachineDetail { kBrief, kFull };

// Empty or nothing: not to be found out here.
struct MachineContext {
  MachineDetail detail = MachineDetail::kBrief;
  std::string architecture;            // uname's: "x86_64", "aarch64"
  std::string cpu;                     // "AMD EPYC 9654", "2 x Cortex-A72 + 4 x Cortex-A53"
  std::string board;                   // the device tree's model: "Raspberry Pi 4 Model B Rev 1.4"
  std::vector<std::string> features;   // vector units and the like, by LLVM's names
  int allowed_cpus = 0;                // that this process may use
  int physical_cores = 0;              // of these
  std::optional<int> quota_cpus;       // the cgroup's quota, rounded up
  std::vector<CpuCluster> clusters;    // weakest first
  std::string governor;                // "performance"; several: "schedutil, powersave"
  std::optional<double> load_average;  // of the last minute, all programs
  std::string kernel;                  // "Linux 6.1.0-18-arm64"

  // kFull only.
  std::vector<CpuCache> caches;                          // of the first allowed CPU
  std::optional<std::uint64_t> min_khz, max_khz;         // limits over the allowed CPUs
  std::optional<std::uint64_t> lowest_khz, highest_khz;  // current ones seen over the allowed CPUs
  std::optional<bool> boost;                             // turbo frequencies are switched on
  std::string virtual_machine;  // "QEMU", "xen", "user-mode emulation"; empty: no hint of one

  std::vector<std::string> warnings;  // one sentence each: what may spoil a measurement
};

// "2400 MHz"
std::string megahertz(std::uint64_t khz);

// Never throws for what a machine does not tell.
MachineContext describe_machine(MachineDetail detail, const std::filesystem::path& root = "/");

}  // namespace run_model
