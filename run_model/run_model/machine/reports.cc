#include "run_model/run_model/machine/reports.h"

#include <optional>
#include <utility>

#include "run_model/shared/formatted.h"
#include "run_model/shared/json.h"
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

std::string mebibytes(std::size_t bytes) {
  return formatted("%.1f", static_cast<double>(bytes) / (1 << 20));
}

// Right-aligned in a column of the table; "-" for what the kernel does not tell.
std::string column(const std::optional<std::size_t>& bytes, int width) {
  return formatted("%*s", width, bytes ? mebibytes(*bytes).c_str() : "-");
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
  if (cache.shared_by.size() > 1) {
    text += " for " + std::to_string(cache.shared_by.size()) + " CPUs";
  }
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
    object.put(key, Json());
  } else {
    object.put(key, value);
  }
}

Json cluster_json(const CpuCluster& cluster) {
  Json json;
  json.put("cpus", cluster.cpus);
  json.put("strength", cluster.strength);
  put_known(json, "capacity", static_cast<std::uint64_t>(cluster.capacity));
  put_known(json, "max_mhz", cluster.max_khz / 1000);
  return json;
}

void add_full_detail(Json& json, const MachineContext& machine) {
  Json caches = Json::array();
  for (const CpuCache& cache : machine.caches) {
    Json item;
    item.put("level", cache.level);
    item.put("type", cache.type);
    item.put("bytes", cache.bytes);
    item.put("shared_by", cache.shared_by.size());
    caches.add(std::move(item));
  }
  json.put("caches", std::move(caches));
  Json mhz;
  put_known(mhz, "min", machine.min_khz.value_or(0) / 1000);
  put_known(mhz, "max", machine.max_khz.value_or(0) / 1000);
  put_known(mhz, "lowest_now", machine.lowest_khz.value_or(0) / 1000);
  put_known(mhz, "highest_now", machine.highest_khz.value_or(0) / 1000);
  json.put("mhz", std::move(mhz));
  json.put("boost", machine.boost);
  json.put("virtual_machine", text_or_null(machine.virtual_machine));
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
  json.put("threads", plan.threads);
  json.put("cpus", plan.cpus);
  json.put("restricted", plan.restricted);
  json.put("cluster", text_or_null(plan.cluster));
  json.put("spin_microseconds", plan.spin_microseconds);
  json.put("reason", plan.reason);
  json.put("notices", plan.notices);
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
  json.put("architecture", text_or_null(machine.architecture));
  json.put("cpu", text_or_null(machine.cpu));
  json.put("board", text_or_null(machine.board));
  json.put("features", machine.features);
  json.put("allowed_cpus", machine.allowed_cpus);
  json.put("physical_cores", machine.physical_cores);
  json.put("quota_cpus", machine.quota_cpus);
  Json clusters = Json::array();
  for (const CpuCluster& cluster : machine.clusters) clusters.add(cluster_json(cluster));
  json.put("clusters", std::move(clusters));
  json.put("governor", text_or_null(machine.governor));
  json.put("load_average", machine.load_average);
  json.put("kernel", text_or_null(machine.kernel));
  if (machine.detail == MachineDetail::kFull) add_full_detail(json, machine);
  json.put("warnings", machine.warnings);
  return json;
}

std::string memory_text(const MemoryStages& memory) {
  std::string text =
      "Memory, MiB         resident  anonymous  file-backed   shared      PSS  swapped\n";
  for (const MemoryStages::Stage& stage : memory.stages()) {
    const ProcessMemory& now = stage.memory;
    text += formatted("  %-18s", stage.name.c_str()) + column(now.resident, 8) +
            column(now.anonymous, 11) + column(now.file_backed, 13) + column(now.shared, 9) +
            column(now.proportional, 9) + column(now.swapped, 9) + "\n";
  }
  const OwnMemory& own = memory.own();
  text += "  peak              " + column(memory.peak_resident(), 8) + "\n";
  text += "Held by the runtime, MiB: parameters " + mebibytes(own.executor.params_mapped) +
          " in place and " + mebibytes(own.executor.params_copied) + " copied, activations " +
          mebibytes(own.executor.activations) + ", workspaces " + mebibytes(own.workspaces) + "\n";
  if (own.executor.device_activations != 0 || own.executor.device_params != 0) {
    text += "On devices, MiB: parameters " + mebibytes(own.executor.device_params) +
            ", activations " + mebibytes(own.executor.device_activations) + ", workspaces " +
            mebibytes(own.executor.device_workspaces) + "\n";
  }
  return text;
}

Json memory_json(const MemoryStages& memory) {
  Json stages = Json::array();
  for (const MemoryStages::Stage& stage : memory.stages()) {
    const ProcessMemory& now = stage.memory;
    Json item;
    item.put("stage", stage.name);
    item.put("resident", now.resident);
    item.put("anonymous", now.anonymous);
    item.put("file_backed", now.file_backed);
    item.put("shared", now.shared);
    item.put("proportional", now.proportional);
    item.put("swapped", now.swapped);
    stages.add(std::move(item));
  }
  Json own;
  own.put("parameters_mapped", memory.own().executor.params_mapped);
  own.put("parameters_copied", memory.own().executor.params_copied);
  own.put("activations", memory.own().executor.activations);
  own.put("workspaces", memory.own().workspaces);
  own.put("device_parameters", memory.own().executor.device_params);
  own.put("device_activations", memory.own().executor.device_activations);
  own.put("device_workspaces", memory.own().executor.device_workspaces);
  Json json;
  json.put("stages", std::move(stages));
  json.put("peak_resident", memory.peak_resident());
  json.put("own", std::move(own));
  return json;
}

std::string thread_sweep_text(const ThreadSweep& sweep) {
  std::string text =
      formatted("Thread sweep, %zu rounds: ms for a run, ms of CPU time for a run\n"
                "  threads  %-10s %-8s spin us   median      p95  CPU time  speed-up  efficiency\n",
                sweep.rounds, "CPUs", "cluster");
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const SweepRow& row = sweep.rows[i];
    const std::string spin =
        row.plan.threads == 1 ? "-" : std::to_string(row.plan.spin_microseconds);
    text += formatted(
        "%c %7d  %-10s %-8s %7s %8.3f %8.3f %9.3f %9.2f %9.0f %%\n",
        i == sweep.recommended ? '*' : ' ', row.plan.threads, cpu_list_text(row.plan.cpus).c_str(),
        row.plan.cluster.empty() ? "-" : row.plan.cluster.c_str(), spin.c_str(), row.run.median,
        row.run.p95, row.cpu_per_run, row.speed_up, row.efficiency * 100);
  }
  const SweepRow& chosen = sweep.rows[sweep.recommended];
  return text + "Recommended: " + chosen.flags + " (" + sweep.why + ")\n";
}

Json thread_sweep_json(const ThreadSweep& sweep) {
  Json rows = Json::array();
  for (const SweepRow& row : sweep.rows) {
    Json item;
    item.put("threads", row.plan.threads);
    item.put("cpus", row.plan.cpus);
    item.put("cluster", text_or_null(row.plan.cluster));
    item.put("spin_microseconds", row.plan.spin_microseconds);
    item.put("flags", row.flags);
    item.put("samples", row.run.count);
    item.put("min", row.run.min);
    item.put("median", row.run.median);
    std::optional<double> low, high;
    if (row.run.interval) {
      low = row.run.interval->low;
      high = row.run.interval->high;
    }
    item.put("median_low", low);
    item.put("median_high", high);
    item.put("p95", row.run.p95);
    item.put("cpu_time", row.cpu_per_run);
    item.put("speed_up", row.speed_up);
    item.put("efficiency", row.efficiency);
    rows.add(std::move(item));
  }
  Json recommended;
  recommended.put("row", sweep.recommended);
  recommended.put("flags", sweep.rows[sweep.recommended].flags);
  recommended.put("why", sweep.why);
  Json json;
  json.put("rounds", sweep.rounds);
  json.put("rows", std::move(rows));
  json.put("recommended", std::move(recommended));
  return json;
}

}  // namespace run_model
