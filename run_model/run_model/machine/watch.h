// Whether a machine stayed the same while something was measured on it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "run_model/run_model/machine/context.h"

namespace run_model {

// What may change; nothing where this machine does not tell.
struct MachineSample {
  std::optional<std::uint64_t> lowest_khz, highest_khz;  // over the allowed CPUs
  std::optional<std::uint64_t> cpu_throttled;    // times that heat or current slowed the CPU down
  std::optional<std::uint64_t> quota_throttled;  // times that the cgroup's quota halted the process
  std::optional<std::uint64_t> board_events;     // Raspberry Pi: what slowed it down, as bits
  std::optional<std::uint64_t> stolen_ticks;     // CPU time that went to other virtual machines
  std::optional<std::uint64_t> all_ticks;        // CPU time of all kinds
  std::optional<double> hottest;                 // degrees Celsius, of all sensors
};

MachineSample sample_machine(const std::filesystem::path& root = "/");

// Adds to the context's warnings what differs, and takes over the frequencies of `after`.
void compare_samples(const MachineSample& before, const MachineSample& after,
                     MachineContext& context);

// Samples now and in finish().
class MachineWatch {
 public:
  MachineWatch() : before_(sample_machine()) {}
  void finish(MachineContext& context) const {
    compare_samples(before_, sample_machine(), context);
  }

 private:
  MachineSample before_;
};

}  // namespace run_model
