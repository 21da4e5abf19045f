#include <array>
#include <cstdio>

#include "run_model/machine/thread_sweep.h"
#include "runtime/cpu_list.h"

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
    std::snprintf(line.data(), line.size(),
                  "%c %7d  %-10s %-8s %7s %8.3f %8.3f %9.3f %9.2f %9.0f %%\n",
                  i == sweep.recommended ? '*' : ' ', row.plan.threads,
                  cpu_list_text(row.plan.cpus).c_str(),
                  row.plan.cluster.empty() ? "-" : row.plan.cluster.c_str(), spin.c_str(),
                  row.run.median, row.run.p95, row.cpu_per_run, row.speed_up,
                  row.efficiency * 100);
    text += line.data();
  }
  const SweepRow& chosen = sweep.rows[sweep.recommended];
  return text + "Recommended: " + chosen.flags + " (" + sweep.why + ")\n";
}

Json thread_sweep_json(const ThreadSweep& sweep) {
  Json rows = Json::array();
  for (const SweepRow& row : sweep.rows) {
    const auto& interval = row.run.interval;
    rows.push_back({{"threads", row.plan.threads},
                    {"cpus", row.plan.cpus},
                    {"cluster", text_or_null(row.plan.cluster)},
                    {"spin_microseconds", row.plan.spin_microseconds},
                    {"flags", row.flags},
                    {"samples", row.run.count},
                    {"min", row.run.min},
                    {"median", row.run.median},
                    {"median_low", interval ? Json(interval->low) : Json()},
                    {"median_high", interval ? Json(interval->high) : Json()},
                    {"p95", row.run.p95},
                    {"cpu_time", row.cpu_per_run},
                    {"speed_up", row.speed_up},
                    {"efficiency", row.efficiency}});
  }
  return {{"rounds", sweep.rounds},
          {"rows", std::move(rows)},
          {"recommended",
           {{"row", sweep.recommended},
            {"flags", sweep.rows[sweep.recommended].flags},
            {"why", sweep.why}}}};
}

}  // namespace run_model
