#include "run_model/run_model/machine/cpu_name.h"

#include <cstdio>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/system_file.h"
#include "base/text.h"
#include "run_model/shared/formatted.h"

namespace run_model {
namespace {

struct Core {
  std::uint8_t implementer;
  std::uint16_t part;
  const char* name;
};

constexpr std::uint8_t kArm = 0x41;
constexpr std::uint8_t kQualcomm = 0x51;
constexpr std::uint8_t kApple = 0x61;

constexpr Core kCores[] = {
    {kArm, 0xb76, "ARM1176"},
    {kArm, 0xc05, "Cortex-A5"},
    {kArm, 0xc07, "Cortex-A7"},
    {kArm, 0xc08, "Cortex-A8"},
    {kArm, 0xc09, "Cortex-A9"},
    {kArm, 0xc0d, "Cortex-A12"},
    {kArm, 0xc0e, "Cortex-A17"},
    {kArm, 0xc0f, "Cortex-A15"},
    {kArm, 0xd01, "Cortex-A32"},
    {kArm, 0xd02, "Cortex-A34"},
    {kArm, 0xd03, "Cortex-A53"},
    {kArm, 0xd04, "Cortex-A35"},
    {kArm, 0xd05, "Cortex-A55"},
    {kArm, 0xd06, "Cortex-A65"},
    {kArm, 0xd07, "Cortex-A57"},
    {kArm, 0xd08, "Cortex-A72"},
    {kArm, 0xd09, "Cortex-A73"},
    {kArm, 0xd0a, "Cortex-A75"},
    {kArm, 0xd0b, "Cortex-A76"},
    {kArm, 0xd0c, "Neoverse-N1"},
    {kArm, 0xd0d, "Cortex-A77"},
    {kArm, 0xd0e, "Cortex-A76AE"},
    {kArm, 0xd40, "Neoverse-V1"},
    {kArm, 0xd41, "Cortex-A78"},
    {kArm, 0xd42, "Cortex-A78AE"},
    {kArm, 0xd44, "Cortex-X1"},
    {kArm, 0xd46, "Cortex-A510"},
    {kArm, 0xd47, "Cortex-A710"},
    {kArm, 0xd48, "Cortex-X2"},
    {kArm, 0xd49, "Neoverse-N2"},
    {kArm, 0xd4b, "Cortex-A78C"},
    {kArm, 0xd4c, "Cortex-X1C"},
    {kArm, 0xd4d, "Cortex-A715"},
    {kArm, 0xd4e, "Cortex-X3"},
    {kArm, 0xd4f, "Neoverse-V2"},
    {kArm, 0xd80, "Cortex-A520"},
    {kArm, 0xd81, "Cortex-A720"},
    {kArm, 0xd82, "Cortex-X4"},
    {kArm, 0xd84, "Neoverse-V3"},
    {kArm, 0xd85, "Cortex-X925"},
    {kArm, 0xd87, "Cortex-A725"},
    {kArm, 0xd8e, "Neoverse-N3"},
    {kQualcomm, 0x001, "Oryon"},
    {kQualcomm, 0x800, "Kryo 2xx Gold"},
    {kQualcomm, 0x801, "Kryo 2xx Silver"},
    {kQualcomm, 0x802, "Kryo 3xx Gold"},
    {kQualcomm, 0x803, "Kryo 3xx Silver"},
    {kQualcomm, 0x804, "Kryo 4xx Gold"},
    {kQualcomm, 0x805, "Kryo 4xx Silver"},
    {kApple, 0x022, "Icestorm (M1)"},
    {kApple, 0x023, "Firestorm (M1)"},
    {kApple, 0x032, "Blizzard (M2)"},
    {kApple, 0x033, "Avalanche (M2)"},
};

}  // namespace

std::string arm_core_name(std::uint32_t implementer, std::uint32_t part) {
  for (const Core& core : kCores) {
    if (core.implementer == implementer && core.part == part) return core.name;
  }
  return formatted("implementer 0x%02x, part 0x%03x", implementer, part);
}

namespace {

namespace fs = std::filesystem;

std::optional<std::uint32_t> parse_id(std::string_view text) {
  const auto value =
      text.starts_with("0x") ? hex_number(text.substr(2)) : take_number<std::uint64_t>(text);
  if (!value || *value > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

// Arm's /proc/cpuinfo has a paragraph for each CPU, on older kernels with the fields of the core
// only in the last.
std::map<int, std::string> cores_in_cpuinfo(std::string_view cpuinfo) {
  std::map<int, std::string> cores;
  while (!cpuinfo.empty()) {
    const std::size_t end = cpuinfo.find("\n\n");
    const std::string_view paragraph = cpuinfo.substr(0, end);
    cpuinfo.remove_prefix(end == cpuinfo.npos ? cpuinfo.size() : end + 2);
    const auto number = parse_id(field(paragraph, "processor"));
    const auto implementer = parse_id(field(paragraph, "CPU implementer"));
    const auto part = parse_id(field(paragraph, "CPU part"));
    if (implementer && part) {
      cores[number ? static_cast<int>(*number) : -1] = arm_core_name(*implementer, *part);
    }
  }
  return cores;
}

std::string arm_core(int cpu, const std::map<int, std::string>& listed, const fs::path& root) {
  const auto midr = read_number(cpu_file(cpu, "regs/identification/midr_el1", root));
  if (midr) return arm_core_name(*midr >> 24 & 0xff, *midr >> 4 & 0xfff);
  if (const auto found = listed.find(cpu); found != listed.end()) return found->second;
  return listed.empty() ? "" : listed.rbegin()->second;
}

std::string arm_cores(const std::vector<CpuCluster>& clusters, std::string_view cpuinfo,
                      const fs::path& root) {
  const std::map<int, std::string> listed = cores_in_cpuinfo(cpuinfo);
  std::vector<std::pair<std::string, int>> counts;
  for (auto cluster = clusters.rbegin(); cluster != clusters.rend(); ++cluster) {
    for (int cpu : cluster->cpus) {
      const std::string core = arm_core(cpu, listed, root);
      if (core.empty()) return "";
      if (counts.empty() || counts.back().first != core) counts.emplace_back(core, 0);
      ++counts.back().second;
    }
  }
  std::string text;
  for (const auto& [core, count] : counts) {
    text += (text.empty() ? "" : " + ") + std::to_string(count) + " x " + core;
  }
  return text;
}

}  // namespace

std::string cpu_name(const std::vector<CpuCluster>& clusters, const fs::path& root) {
  const fs::path cpuinfo = root / "proc/cpuinfo";
  // One CPU's worth: on x86 each further one costs the kernel time.
  const std::string start = read_system_file(cpuinfo, 4096);
  if (field(start, "vendor_id").empty()) {
    const std::string cores = arm_cores(clusters, read_system_file(cpuinfo, 1 << 16), root);
    if (!cores.empty()) return cores;
  }
  for (const char* key : {"model name", "uarch", "cpu model", "Processor", "isa"}) {
    if (const std::string_view name = field(start, key); !name.empty()) return std::string(name);
  }
  return "";
}

bool runs_emulated(const fs::path& root) {
#if defined(__x86_64__) || defined(__i386__)
  static_cast<void>(root);
  return false;
#else
  const std::string cpuinfo = read_system_file(root / "proc/cpuinfo");
  const std::string_view vendor = field(cpuinfo, "vendor_id");
  return vendor == "GenuineIntel" || vendor == "AuthenticAMD";
#endif
}

}  // namespace run_model
