#include "run_model/run_model/machine/machine_reports.h"

#include <array>
#include <cstdio>
#include <utility>

#include "run_model/shared/json_put.h"
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!part.empty()) text += (text.empty() ? "" : separator) + part;
  }
  return text;
}

std::string counted(int count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string formatted(const char* format, double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string mebibytes(std::size_t bytes) {
  return formatted("%.1f", static_cast<double>(bytes) / (1 << 20));
}

// Right-aligned in a column of the table; "-" for what the kernel does not tell.
std::string column(const std::optional<std::size_t>& bytes, int width) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), "%*s", width, bytes ? mebibytes(*bytes).c_str() : "-");
  return text.data();
}

std::string cluster_text(const CpuCluster& cluster) {
  std::string text = "CPU " + cpu_list_text(cluster.cpus);
  if (cluster.capacity > 0) text += " (capacity " + std::to_string(cluster.capacity) + ")";
  if (cluster.max_khz > 0) text += " up to " + std::to_string(cluster.max_khz / 1000) + " MHz";
  return text;
}

std::string cache_text(const CpuCache& cache) {
  std::string text = "L" + std::to_string(cache.level);
  if (cache.type == "Data") text += "d";
  if (cache.type == "Instruction") text += "i";
  text += " " + std::to_string(cache.bytes >> 10) + " KiB";
  if (cache.shared_by > 1) text += " for " + std::to_string(cache.shared_by) + " CPUs";
  return text;
}

std::string speed_text(const MachineContext& machine) {
  std::vector<std::string> parts;
  if (!machine.governor.empty()) parts.push_back("governor " + machine.governor);
  if (machine.min_khz && machine.max_khz) {
    parts.push_back(std::to_string(*machine.min_khz / 1000) + " to " +
                    std::to_string(*machine.max_khz / 1000) + " MHz");
  }
  if (machine.highest_khz) {
    parts.push_back("now " + std::to_string(*machine.highest_khz / 1000) + " MHz");
  }
  if (machine.boost) parts.push_back(*machine.boost ? "boost on" : "boost off");
  return joined(parts, ", ");
}

std::string system_text(const MachineContext& machine) {
  std::vector<std::string> parts{machine.kernel};
  if (machine.load_average) {
    parts.push_back("load average " + formatted("%.2f", *machine.load_average));
  }
  if (machine.quota_cpus) parts.push_back("a quota of " + counted(*machine.quota_cpus, "CPU"));
  if (!machine.virtual_machine.empty()) {
    parts.push_back("virtual machine (" + machine.virtual_machine + ")");
  }
  return joined(parts, ", ");
}

// Null for 0, which stands for what is not told.
void put_known(Json& object, const char* key, std::uint64_t value) {
  if (value == 0) {
    put_null(object, key);
  } else {
    put(object, key, value);
  }
}

Json cluster_json(const CpuCluster& cluster) {
  Json json;
  put(json, "cpus", cluster.cpus);
  put(json, "strength", cluster.strength);
  put_known(json, "capacity", static_cast<std::uint64_t>(cluster.capacity));
  put_known(json, "max_mhz", cluster.max_khz / 1000);
  return json;
}

void add_full_detail(Json& json, const MachineContext& machine) {
  Json caches = Json::array();
  for (const CpuCache& cache : machine.caches) {
    Json item;
    put(item, "level", cache.level);
    put(item, "type", cache.type);
    put(item, "bytes", cache.bytes);
    put(item, "shared_by", cache.shared_by);
    caches.push_back(std::move(item));
  }
  put_json(json, "caches", std::move(caches));
  Json mhz;
  put_known(mhz, "min", machine.min_khz.value_or(0) / 1000);
  put_known(mhz, "max", machine.max_khz.value_or(0) / 1000);
  put_known(mhz, "lowest_now", machine.lowest_khz.value_or(0) / 1000);
  put_known(mhz, "highest_now", machine.highest_khz.value_or(0) / 1000);
  put_json(json, "mhz", std::move(mhz));
  put(json, "boost", machine.boost);
  put_text_or_null(json, "virtual_machine", machine.virtual_machine);
}

}  // namespace

std::string thread_plan_text(const ThreadPlan& plan) {
  std::string text = "Threads: " + std::to_string(plan.threads) + " on CPU " +
                     cpu_list_text(plan.cpus) + " (" + plan.reason + ")";
  if (plan.threads > 1) {
    text += ", idle ones wait " + std::to_string(plan.spin_microseconds) + " us before they sleep";
  }
  text += "\n";
  for (const std::string& notice : plan.notices) text += "Warning: " + notice + "\n";
  return text;
}

Json thread_plan_json(const ThreadPlan& plan) {
  Json json;
  put(json, "threads", plan.threads);
  put(json, "cpus", plan.cpus);
  put(json, "restricted", plan.restricted);
  put_text_or_null(json, "cluster", plan.cluster);
  put(json, "spin_microseconds", plan.spin_microseconds);
  put(json, "reason", plan.reason);
  put(json, "notices", plan.notices);
  return json;
}

std::string machine_text(const MachineContext& machine) {
  const auto line = [](const char* what, const std::string& text) {
    return text.empty() ? "" : "  " + std::string(what) + ": " + text + "\n";
  };
  std::string text = "Machine: " +
                     joined({machine.board, machine.cpu, machine.architecture,
                             counted(machine.physical_cores, "core") + " and " +
                                 counted(machine.allowed_cpus, "CPU") + " at hand"},
                            ", ") +
                     "\n";
  if (machine.clusters.size() > 1) {
    std::vector<std::string> clusters;
    for (const CpuCluster& cluster : machine.clusters) clusters.push_back(cluster_text(cluster));
    text += line("clusters", joined(clusters, "; "));
  }
  text += line("features", joined(machine.features, " "));
  std::vector<std::string> caches;
  for (const CpuCache& cache : machine.caches) caches.push_back(cache_text(cache));
  text += line("caches", joined(caches, ", "));
  text += line("speed", speed_text(machine));
  text += line("system", system_text(machine));
  for (const std::string& warning : machine.warnings) text += "Warning: " + warning + "\n";
  return text;
}

Json machine_json(const MachineContext& machine) {
  Json json;
  put_text_or_null(json, "architecture", machine.architecture);
  put_text_or_null(json, "cpu", machine.cpu);
  put_text_or_null(json, "board", machine.board);
  put(json, "features", machine.features);
  put(json, "allowed_cpus", machine.allowed_cpus);
  put(json, "physical_cores", machine.physical_cores);
  put(json, "quota_cpus", machine.quota_cpus);
  Json clusters = Json::array();
  for (const CpuCluster& cluster : machine.clusters) clusters.push_back(cluster_json(cluster));
  put_json(json, "clusters", std::move(clusters));
  put_text_or_null(json, "governor", machine.governor);
  put(json, "load_average", machine.load_average);
  put_text_or_null(json, "kernel", machine.kernel);
  if (machine.detail == MachineDetail::kFull) add_full_detail(json, machine);
  put(json, "warnings", machine.warnings);
  return json;
}

std::string memory_text(const MemoryStages& memory) {
  std::string text =
      "Memory, MiB         resident  anonymous  file-backed   shared      PSS  swapped\n";
  for (const MemoryStages::Stage& stage : memory.stages()) {
    std::array<char, 32> name{};
    std::snprintf(name.data(), name.size(), "  %-18s", stage.name.c_str());
    const ProcessMemory& now = stage.memory;
    text += name.data() + column(now.resident, 8) + column(now.anonymous, 11) +
            column(now.file_backed, 13) + column(now.shared, 9) + column(now.proportional, 9) +
            column(now.swapped, 9) + "\n";
  }
  const OwnMemory& own = memory.own();
  text += "  peak              " + column(memory.peak_resident(), 8) + "\n";
  text += "Held by the runtime, MiB: parameters " + mebibytes(own.executor.params_mapped) +
          " in place and " + mebibytes(own.executor.params_copied) + " copied, activations " +
          mebibytes(own.executor.activations) + ", workspaces " + mebibytes(own.workspaces) + "\n";
  return text;
}

Json memory_json(const MemoryStages& memory) {
  Json stages = Json::array();
  for (const MemoryStages::Stage& stage : memory.stages()) {
    const ProcessMemory& now = stage.memory;
    Json item;
    put(item, "stage", stage.name);
    put(item, "resident", now.resident);
    put(item, "anonymous", now.anonymous);
    put(item, "file_backed", now.file_backed);
    put(item, "shared", now.shared);
    put(item, "proportional", now.proportional);
    put(item, "swapped", now.swapped);
    stages.push_back(std::move(item));
  }
  Json own;
  put(own, "parameters_mapped", memory.own().executor.params_mapped);
  put(own, "parameters_copied", memory.own().executor.params_copied);
  put(own, "activations", memory.own().executor.activations);
  put(own, "workspaces", memory.own().workspaces);
  Json json;
  put_json(json, "stages", std::move(stages));
  put(json, "peak_resident", memory.peak_resident());
  put_json(json, "own", std::move(own));
  return json;
}

}  // namespace run_model
