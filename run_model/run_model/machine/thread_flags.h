// The flags that choose how many threads run a model, and on which CPUs.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace run_model {

// Which part of a machine with several kinds of cores; thread_plan.h says what each means where.
enum class ClusterChoice { kDefault, kBig, kLittle, kMiddle, kPrime, kAll };

struct ThreadSettings {
  int threads = 0;          // --threads; 0: as many as suit this machine
  std::vector<int> cpus{};  // --cpus, ascending; empty: not given
  ClusterChoice cluster = ClusterChoice::kDefault;
  std::optional<int> spin_microseconds{};  // --spin; nothing: the pool's default
  bool sweep = false;                      // --sweep threads: run_thread_sweep() instead of a run
};

// From gflags' flags. Throws Error(kUsage) for values that make no sense, alone or together.
ThreadSettings read_thread_settings();

}  // namespace run_model
