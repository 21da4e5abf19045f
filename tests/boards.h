// What Linux tells of the CPUs of real boards and PCs, as a folder that stands for "/".
//
// Capacities are what the kernel makes of the device trees in its own source: capacity-dmips-mhz
// times the highest frequency, the largest product being 1024 (drivers/base/arch_topology.c).
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"

namespace run_model {

struct BoardCpu {
  int capacity = 0;           // 0: no such file
  std::uint64_t max_khz = 0;  // 0: no cpufreq
  std::uint64_t midr = 0;     // 0: no such file
  std::string siblings{};     // empty: a core of its own
};

class Board {
 public:
  explicit Board(const std::vector<BoardCpu>& cpus) : count_(static_cast<int>(cpus.size())) {
    for (int i = 0; i < count_; ++i) write_cpu(i, cpus[static_cast<std::size_t>(i)]);
    root_->write("sys/devices/system/cpu/online", "0-" + std::to_string(count_ - 1) + "\n");
  }

  const std::filesystem::path& root() const { return root_->path(); }
  std::vector<int> cpus() const {
    std::vector<int> all(static_cast<std::size_t>(count_));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  void write(const std::string& path, const std::string& text) const { root_->write(path, text); }
  void set_quota(const std::string& cpu_max) const {
    write("proc/self/cgroup", "0::/\n");
    write("sys/fs/cgroup/cpu.max", cpu_max + "\n");
  }

 private:
  void write_cpu(int number, const BoardCpu& cpu) const {
    const std::string folder = "sys/devices/system/cpu/cpu" + std::to_string(number) + "/";
    if (cpu.capacity != 0) write(folder + "cpu_capacity", std::to_string(cpu.capacity) + "\n");
    if (cpu.max_khz != 0) {
      write(folder + "cpufreq/cpuinfo_max_freq", std::to_string(cpu.max_khz) + "\n");
    }
    if (cpu.midr != 0) {
      char text[32];
      std::snprintf(text, sizeof(text), "0x%016llx\n", static_cast<unsigned long long>(cpu.midr));
      write(folder + "regs/identification/midr_el1", text);
    }
    write(folder + "topology/thread_siblings_list",
          (cpu.siblings.empty() ? std::to_string(number) : cpu.siblings) + "\n");
  }

  std::unique_ptr<TemporaryFolder> root_ = std::make_unique<TemporaryFolder>();
  int count_;
};

inline std::vector<BoardCpu> operator+(std::vector<BoardCpu> a, const std::vector<BoardCpu>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline constexpr std::uint64_t kCortexA53 = 0x410fd034;
inline constexpr std::uint64_t kCortexA72 = 0x410fd083;
inline constexpr std::uint64_t kCortexA73 = 0x410fd092;

// Four Cortex-A72 at 1.5 GHz, without capacities in the device tree: all are 1024.
inline Board raspberry_pi_4() {
  return Board(std::vector<BoardCpu>(4, {1024, 1'500'000, kCortexA72}));
}

// Two Cortex-A9 of a Zynq-7020: 32-bit, no registers in sysfs.
inline Board pynq_z1() { return Board(std::vector<BoardCpu>(2, {0, 650'000, 0})); }

// RK3399: four Cortex-A53 (485) to 1.416 GHz, two Cortex-A72 (1024) to 1.8 GHz.
inline Board rk3399() {
  return Board(std::vector<BoardCpu>(4, {381, 1'416'000, kCortexA53}) +
               std::vector<BoardCpu>(2, {1024, 1'800'000, kCortexA72}));
}

// The same under a kernel whose device tree has no capacities yet (before 5.2).
inline Board rk3399_without_capacities() {
  return Board(std::vector<BoardCpu>(4, {1024, 1'416'000, kCortexA53}) +
               std::vector<BoardCpu>(2, {1024, 1'800'000, kCortexA72}));
}

// Helio P60: four Cortex-A53 and four Cortex-A73 at the same 2 GHz, without capacities.
inline Board helio_p60() {
  return Board(std::vector<BoardCpu>(4, {0, 2'001'000, kCortexA53}) +
               std::vector<BoardCpu>(4, {0, 2'001'000, kCortexA73}));
}

// Exynos 5422: four Cortex-A7 (539) to 1.4 GHz, four Cortex-A15 (1024) to 2 GHz.
inline Board odroid_xu4() {
  return Board(std::vector<BoardCpu>(4, {377, 1'400'000, 0}) +
               std::vector<BoardCpu>(4, {1024, 2'000'000, 0}));
}

// Snapdragon 865: four Cortex-A55 (448) to 1.8 GHz, three Cortex-A77 (1024) to 2.42 GHz, one
// to 2.84.
inline Board snapdragon_865() {
  return Board(std::vector<BoardCpu>(4, {284, 1'804'800, 0}) +
               std::vector<BoardCpu>(3, {871, 2'419'200, 0}) +
               std::vector<BoardCpu>(1, {1024, 2'841'600, 0}));
}

// Core i9-13900K: eight P cores with two threads each, two of them favoured, and sixteen E cores.
inline Board intel_13900k() {
  std::vector<BoardCpu> cpus;
  for (int core = 0; core < 8; ++core) {
    const std::uint64_t khz = core == 4 || core == 5 ? 5'800'000 : 5'500'000;
    const std::string siblings = std::to_string(2 * core) + "-" + std::to_string(2 * core + 1);
    cpus.insert(cpus.end(), 2, {0, khz, 0, siblings});
  }
  Board board(cpus + std::vector<BoardCpu>(16, {0, 4'300'000, 0}));
  board.write("sys/devices/cpu_core/cpus", "0-15\n");
  board.write("sys/devices/cpu_atom/cpus", "16-31\n");
  return board;
}

// A server with hyper-threads, in a virtual machine that tells no frequencies.
inline Board server_with_hyper_threads() {
  std::vector<BoardCpu> cpus;
  for (int cpu = 0; cpu < 8; ++cpu) {
    cpus.push_back({0, 0, 0, std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4)});
  }
  return Board(cpus);
}

}  // namespace run_model
