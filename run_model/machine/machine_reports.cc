#include "run_model/machine/machine_reports.h"

#include <array>
#include <cstdio>
#include <utility>

#include "runtime/cpu_list.h"

namespace run_model {
namespace {

template <typename T>
Json value_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

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
  return {{"threads", plan.threads},
          {"cpus", plan.cpus},
          {"restricted", plan.restricted},
          {"cluster", text_or_null(plan.cluster)},
          {"spin_microseconds", plan.spin_microseconds},
          {"reason", plan.reason},
          {"notices", plan.notices}};
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
  Json json = {{"architecture", text_or_null(machine.architecture)},
               {"cpu", text_or_null(machine.cpu)},
               {"board", text_or_null(machine.board)},
               {"features", machine.features},
               {"allowed_cpus", machine.allowed_cpus},
               {"physical_cores", machine.physical_cores},
               {"quota_cpus", value_or_null(machine.quota_cpus)}};
  json["clusters"] = Json::array();
  for (const CpuCluster& cluster : machine.clusters) {
    json["clusters"].push_back(
        {{"cpus", cluster.cpus},
         {"strength", cluster.strength},
         {"capacity", cluster.capacity > 0 ? Json(cluster.capacity) : Json()},
         {"max_mhz", cluster.max_khz > 0 ? Json(cluster.max_khz / 1000) : Json()}});
  }
  json["governor"] = text_or_null(machine.governor);
  json["load_average"] = value_or_null(machine.load_average);
  json["kernel"] = text_or_null(machine.kernel);
  if (machine.detail == MachineDetail::kFull) {
    json["caches"] = Json::array();
    for (const CpuCache& cache : machine.caches) {
      json["caches"].push_back({{"level", cache.level},
                                {"type", cache.type},
                                {"bytes", cache.bytes},
                                {"shared_by", cache.shared_by}});
    }
    const auto megahertz = [](const std::optional<std::uint64_t>& khz) {
      return khz ? Json(*khz / 1000) : Json();
    };
    json["mhz"] = {{"min", megahertz(machine.min_khz)},
                   {"max", megahertz(machine.max_khz)},
                   {"lowest_now", megahertz(machine.lowest_khz)},
                   {"highest_now", megahertz(machine.highest_khz)}};
    json["boost"] = value_or_null(machine.boost);
    json["virtual_machine"] = text_or_null(machine.virtual_machine);
  }
  json["warnings"] = machine.warnings;
  return json;
}

std::string memory_text(const MemoryStages& memory) {
  std::string text = "Memory, MiB         resident  anonymous  file-backed   shared      PSS  swapped\n";
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
    stages.push_back({{"stage", stage.name},
                      {"resident", value_or_null(now.resident)},
                      {"anonymous", value_or_null(now.anonymous)},
                      {"file_backed", value_or_null(now.file_backed)},
                      {"shared", value_or_null(now.shared)},
                      {"proportional", value_or_null(now.proportional)},
                      {"swapped", value_or_null(now.swapped)}});
  }
  const OwnMemory& own = memory.own();
  return {{"stages", std::move(stages)},
          {"peak_resident", value_or_null(memory.peak_resident())},
          {"own",
           {{"parameters_mapped", own.executor.params_mapped},
            {"parameters_copied", own.executor.params_copied},
            {"activations", own.executor.activations},
            {"workspaces", own.workspaces}}}};
}

}  // namespace run_model
