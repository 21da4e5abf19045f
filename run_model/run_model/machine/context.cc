#include "run_model/run_model/machine/context.h"

#include <sys/utsname.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "base/system_file.h"
#include "base/text.h"
#include "run_model/run_model/machine/cpu_name.h"
#include "run_model/run_model/machine/watch.h"
#include "run_model/shared/formatted.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

// Of what LLVM can use in kernels, what tells most about their speed.
constexpr std::string_view kTellingFeatures[] = {
    "sse4.2",     "avx",     "f16c",       "fma",        "avx2",     "avx512f",  "avx512bw",
    "avx512vnni", "avxvnni", "avx512bf16", "avx512fp16", "amx-tile", "amx-int8", "amx-bf16",
    "vfp3",       "vfp4",    "neon",       "fullfp16",   "dotprod",  "i8mm",     "bf16",
    "sve",        "sve2",    "v",          "zfh",        "zvfh",
};

constexpr char kEmulated[] = "user-mode emulation";

std::vector<std::string> telling_features() {
  std::vector<std::string> names;
  for (const std::string_view name : kTellingFeatures) {
    const auto found = this_cpu().find(name);
    if (found != this_cpu().end() && found->second) names.emplace_back(name);
  }
  return names;
}

std::string governors(const std::vector<int>& cpus, const fs::path& root) {
  std::vector<std::string> names;
  for (int cpu : cpus) {
    const std::string name = first_line(cpu_file(cpu, "cpufreq/scaling_governor", root));
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) {
      names.push_back(name);
    }
  }
  return comma_list(names);
}

std::optional<double> load_average(const fs::path& root) {
  const std::string line = first_line(root / "proc/loadavg");
  std::string_view rest = line;
  return take_number<double>(rest);
}

std::optional<bool> boost(const fs::path& root) {
  if (const auto off = read_number(root / "sys/devices/system/cpu/intel_pstate/no_turbo")) {
    return *off == 0;
  }
  if (const auto on = read_number(root / "sys/devices/system/cpu/cpufreq/boost")) return *on != 0;
  return std::nullopt;
}

std::string virtual_machine(const fs::path& root) {
  if (runs_emulated(root)) return kEmulated;
  if (std::string type = first_line(root / "sys/hypervisor/type"); !type.empty()) return type;
  std::string vendor = first_line(root / "sys/class/dmi/id/sys_vendor");
  const std::string cpuinfo = read_system_file(root / "proc/cpuinfo");
  const std::string flags = " " + std::string(field(cpuinfo, "flags")) + " ";
  if (flags.find(" hypervisor ") != std::string::npos) {
    return vendor.empty() ? "hypervisor" : vendor;
  }
  if (vendor == "QEMU") return vendor;
  const std::string tree = read_system_file(root / "proc/device-tree/compatible");
  return tree.find("dummy-virt") != std::string::npos ? "QEMU" : "";
}

void describe_frequencies(MachineContext& context, const std::vector<int>& cpus,
                          const fs::path& root) {
  std::optional<std::uint64_t> hardware_limit;
  for (int cpu : cpus) {
    if (const auto khz = read_number(cpu_file(cpu, "cpufreq/scaling_min_freq", root))) {
      context.min_khz = std::min(*khz, context.min_khz.value_or(*khz));
    }
    if (const auto khz = read_number(cpu_file(cpu, "cpufreq/scaling_max_freq", root))) {
      context.max_khz = std::max(*khz, context.max_khz.value_or(0));
    }
    if (const auto khz = read_number(cpu_file(cpu, "cpufreq/cpuinfo_max_freq", root))) {
      hardware_limit = std::max(*khz, hardware_limit.value_or(0));
    }
  }
  const MachineSample now = sample_machine(root);
  context.lowest_khz = now.lowest_khz;
  context.highest_khz = now.highest_khz;
  context.boost = boost(root);
  if (context.max_khz && hardware_limit && *context.max_khz < *hardware_limit) {
    context.warnings.push_back("the CPU's frequency is limited to " + megahertz(*context.max_khz) +
                               ", it could be " + megahertz(*hardware_limit));
  }
}

void warn(MachineContext& context, const fs::path& root) {
  if (!context.governor.empty() && context.governor != "performance") {
    context.warnings.push_back("the frequency governor is " + context.governor +
                               ", not performance: the CPU may not be at its full speed");
  }
  const auto online = parse_cpu_list(first_line(root / "sys/devices/system/cpu/online"));
  const double cpus = online ? static_cast<double>(online->size()) : context.allowed_cpus;
  if (context.load_average && *context.load_average > std::max(0.7, cpus / 4)) {
    context.warnings.push_back(formatted("the load average is %.1f on ", *context.load_average) +
                               counted(static_cast<int>(cpus), "CPU") +
                               ": other programs take part of the CPU time");
  }
  if (context.virtual_machine == kEmulated) {
    context.warnings.push_back("this program is emulated: its times are not those of a real CPU");
  } else if (!context.virtual_machine.empty()) {
    context.warnings.push_back("this is a virtual machine (" + context.virtual_machine +
                               "): others may share its CPUs");
  }
}

}  // namespace

std::string megahertz(std::uint64_t khz) { return std::to_string(khz / 1000) + " MHz"; }

MachineContext describe_machine(MachineDetail detail, const fs::path& root) {
  const std::vector<int> cpus = allowed_cpus();
  MachineContext context;
  context.detail = detail;
  utsname names{};
  if (uname(&names) == 0) {
    context.architecture = names.machine;
    context.kernel = std::string(names.sysname) + " " + names.release;
  }
  context.clusters = cpu_clusters(cpus, root);
  context.cpu = cpu_name(context.clusters, root);
  context.board = read_system_file(root / "proc/device-tree/model");
  context.board.resize(std::min(context.board.find('\0'), context.board.size()));
  context.features = telling_features();
  context.allowed_cpus = static_cast<int>(cpus.size());
  context.physical_cores = physical_cores(cpus, root);
  context.quota_cpus = cgroup_cpu_limit(root);
  context.governor = governors(cpus, root);
  context.load_average = load_average(root);
  if (detail == MachineDetail::kFull) {
    context.caches = cpu_caches(cpus.front(), root);
    context.virtual_machine = virtual_machine(root);
    describe_frequencies(context, cpus, root);
  }
  warn(context, root);
  return context;
}

}  // namespace run_model
