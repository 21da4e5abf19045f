#include "runtime/cpu/clusters.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "base/system_file.h"
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

struct Cpu {
  int number = 0;
  std::uint64_t strength = 0;  // comparable among the CPUs of one machine
  std::optional<std::uint64_t> capacity;
  std::optional<std::uint64_t> max_khz;
};

// Whether the Main ID Register names one of Arm's in-order cores for phones and boards: Cortex-A5,
// A7, A32, A34, A35, A53, A55, A510 and A520 (each core's Technical Reference Manual, "MIDR").
bool is_in_order_core(std::uint64_t midr) {
  constexpr std::array<std::uint64_t, 9> kParts{0xc05, 0xc07, 0xd01, 0xd02, 0xd03,
                                                0xd04, 0xd05, 0xd46, 0xd80};
  constexpr std::uint64_t kArm = 0x41;
  const std::uint64_t implementer = midr >> 24 & 0xff;
  const std::uint64_t part = midr >> 4 & 0xfff;
  return implementer == kArm && std::find(kParts.begin(), kParts.end(), part) != kParts.end();
}

Cpu describe(int number, const fs::path& root) {
  Cpu cpu;
  cpu.number = number;
  cpu.capacity = read_number(cpu_file(number, "cpu_capacity", root));
  cpu.max_khz = read_number(cpu_file(number, "cpufreq/cpuinfo_max_freq", root));
  return cpu;
}

void tell_strengths(std::vector<Cpu>& cpus, const fs::path& root) {
  const auto all_have = [&](auto member) {
    return std::all_of(cpus.begin(), cpus.end(),
                       [&](const Cpu& cpu) { return (cpu.*member).value_or(0) > 0; });
  };
  const bool differ = std::any_of(cpus.begin(), cpus.end(), [&](const Cpu& cpu) {
    return cpu.capacity != cpus.front().capacity;
  });
  if (differ && all_have(&Cpu::capacity)) {
    for (Cpu& cpu : cpus) cpu.strength = *cpu.capacity;
    return;
  }
  if (all_have(&Cpu::max_khz)) {
    for (Cpu& cpu : cpus) {
      const std::uint64_t midr =
          read_number(cpu_file(cpu.number, "regs/identification/midr_el1", root)).value_or(0);
      cpu.strength = *cpu.max_khz / (is_in_order_core(midr) ? 2 : 1);
    }
    return;
  }
  const std::vector<int> weak =
      parse_cpu_list(first_line(root / "sys/devices/cpu_atom/cpus")).value_or(std::vector<int>{});
  for (Cpu& cpu : cpus) {
    cpu.strength = std::binary_search(weak.begin(), weak.end(), cpu.number) ? 1 : 2;
  }
}

}  // namespace

std::vector<CpuCluster> cpu_clusters(std::span<const int> cpus, const fs::path& root) {
  std::vector<Cpu> described;
  for (int cpu : cpus) described.push_back(describe(cpu, root));
  tell_strengths(described, root);
  std::stable_sort(described.begin(), described.end(),
                   [](const Cpu& a, const Cpu& b) { return a.strength > b.strength; });

  std::vector<CpuCluster> clusters;
  std::uint64_t strongest = 0;  // of the last cluster
  for (const Cpu& cpu : described) {
    if (clusters.empty() || cpu.strength * 100 < strongest * 92) {
      strongest = cpu.strength;
      clusters.emplace_back().strength =
          static_cast<double>(cpu.strength) / static_cast<double>(described.front().strength);
    }
    CpuCluster& cluster = clusters.back();
    cluster.cpus.push_back(cpu.number);
    cluster.capacity = std::max(cluster.capacity, static_cast<int>(cpu.capacity.value_or(0)));
    cluster.max_khz = std::max(cluster.max_khz, cpu.max_khz.value_or(0));
  }
  for (CpuCluster& cluster : clusters) std::sort(cluster.cpus.begin(), cluster.cpus.end());
  std::reverse(clusters.begin(), clusters.end());
  return clusters;
}

}  // namespace run_model
