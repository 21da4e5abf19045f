// Tries the sensible numbers of threads and sets of CPUs on a model, and recommends one.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "run_model/json_values.h"
#include "run_model/machine/thread_plan.h"
#include "run_model/measure/timing.h"
#include "runtime/graph_executor.h"

namespace run_model {

struct SweepRow {
  ThreadPlan plan;
  Statistics run;             // of all rounds' samples, milliseconds
  double cpu_per_run = 0.0;   // CPU time of all threads, user and system, milliseconds
  double speed_up = 1.0;      // against the first row
  double efficiency = 1.0;    // speed_up for each thread
};

struct ThreadSweep {
  std::vector<SweepRow> rows;
  std::size_t rounds = 0;
  std::size_t recommended = 0;  // index of a row
  std::string flags;            // that set it: "--threads 2 --cluster big"
  std::string why;              // one sentence
};

// `executor` has all its inputs set. Each setting is measured with measure_runs(), in several rounds
// over all settings, so that a slow minute of the machine falls on all of them alike. Leaves the
// calling thread's CPU mask and the executor's threads as they were. Shows progress on a terminal.
ThreadSweep run_thread_sweep(GraphExecutor& executor, const ThreadSettings& threading,
                             const MeasureSettings& measure);

std::string thread_sweep_text(const ThreadSweep& sweep);
// The report's key "sweep".
Json thread_sweep_json(const ThreadSweep& sweep);

}  // namespace run_model
