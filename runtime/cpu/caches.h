// The caches of a CPU, from what Linux tells.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace run_model {

struct CpuCache {
  int level = 0;
  std::string type;  // "Data", "Instruction", "Unified"
  std::uint64_t bytes = 0;
  std::vector<int> shared_by;  // CPUs; empty: not known

  bool holds_data() const { return type != "Instruction"; }
};

// As <root>/sys/devices/system/cpu/cpu<number>/cache lists them, the nearest first; none where the
// system does not tell (as many boards' do not). A size of another form than "32K" or "1M" is 0.
std::vector<CpuCache> cpu_caches(int number, const std::filesystem::path& root = "/");

}  // namespace run_model
