#include "run_model/run_model/machine/cpu_name.h"

#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/system_file.h"
#include "run_model/run_model/machine/arm_core.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint32_t> parse_id(std::string_view text) {
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc()) return std::nullopt;
  return value;
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
