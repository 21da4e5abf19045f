#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "run_model/run_model/machine/thread_sweep.h"
#include "run_model/shared/json_put.h"
#include "runtime/cpu/topology.h"

namespace run_model {

std::string thread_sweep_text(const ThreadSweep& sweep) {
  std::array<char, 160> line{};
  std::snprintf(line.data(), line.size(),
                "Thread sweep, %zu rounds: ms for a run, ms of CPU time for a run\n"
                "  threads  %-10s %-8s spin us   median      p95  CPU time  speed-up  efficiency\n",
                sweep.rounds, "CPUs", "cluster");
  std::string text = line.data();
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    const SweepRow& row = sweep.rows[i];
    const std::string spin =
        row.plan.threads == 1 ? "-" : std::to_string(row.plan.spin_microseconds);
    std::snprintf(
        line.data(), line.size(), "%c %7d  %-10s %-8s %7s %8.3f %8.3f %9.3f %9.2f %9.0f %%\n",
        i == sweep.recommended ? '*' : ' ', row.plan.threads, cpu_list_text(row.plan.cpus).c_str(),
        row.plan.cluster.empty() ? "-" : row.plan.cluster.c_str(), spin.c_str(), row.run.median,
        row.run.p95, row.cpu_per_run, row.speed_up, row.efficiency * 100);
    text += line.data();
  }
  const SweepRow& chosen = sweep.rows[sweep.recommended];
  return text + "Recommended: " + chosen.flags + " (" + sweep.why + ")\n";
}

Json thread_sweep_json(const ThreadSweep& sweep) {
  Json rows = Json::array();
  for (const SweepRow& row : sweep.rows) {
    Json item;
    put(item, "threads", row.plan.threads);
    put(item, "cpus", row.plan.cpus);
    put_text_or_null(item, "cluster", row.plan.cluster);
    put(item, "spin_microseconds", row.plan.spin_microseconds);
    put(item, "flags", row.flags);
    put(item, "samples", row.run.count);
    put(item, "min", row.run.min);
    put(item, "median", row.run.median);
    std::optional<double> low, high;
    if (row.run.interval) {
      low = row.run.interval->low;
      high = row.run.interval->high;
    }
    put(item, "median_low", low);
    put(item, "median_high", high);
    put(item, "p95", row.run.p95);
    put(item, "cpu_time", row.cpu_per_run);
    put(item, "speed_up", row.speed_up);
    put(item, "efficiency", row.efficiency);
    rows.push_back(std::move(item));
  }
  Json recommended;
  put(recommended, "row", sweep.recommended);
  put(recommended, "flags", sweep.rows[sweep.recommended].flags);
  put(recommended, "why", sweep.why);
  Json json;
  put(json, "rounds", sweep.rounds);
  put_json(json, "rows", std::move(rows));
  put_json(json, "recommended", std::move(recommended));
  return json;
}

}  // namespace run_model
