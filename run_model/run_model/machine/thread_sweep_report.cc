#include <array>
#include <cstdio>
#include <optional>
#include <utility>

#include "run_model/run_model/machine/thread_sweep.h"
#include "run_model/shared/json.h"
#include "runtime/cpu/list.h"

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
