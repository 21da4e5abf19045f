// What the kernel says about this process's memory.
#pragma once

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

namespace run_model::bench {

// A field of /proc/self/status (proc(5)) in KiB: VmRSS, the resident memory now; VmHWM, the most it
// ever was; RssAnon, the part of it that no file stands behind.
inline long memory_kib(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(field + ":", 0) == 0) return std::atol(line.c_str() + field.size() + 1);
  }
  throw std::runtime_error("no " + field + " in /proc/self/status");
}

// VmHWM starts anew at what is resident now (proc_pid_clear_refs(5)).
inline void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace run_model::bench
