// Tries the sensible numbers of threads and sets of CPUs on a model, and recommends one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "run_model/run_model/measure/timing.h"
#include "run_model/shared/thread_plan.h"

namespace run_model {

struct LoadedPackage;

struct SweepRow {
  ThreadPlan plan;
  std::string flags;         // that choose it: "--threads 2 --cluster big"
  Statistics run;            // of all rounds' samples, milliseconds
  double cpu_per_run = 0.0;  // CPU time of all threads, user and system, milliseconds
  double speed_up = 1.0;     // against the first row
  double efficiency = 1.0;   // speed_up for each thread
};

struct ThreadSweep {
  std::vector<SweepRow> rows;
  std::size_t rounds = 0;
  std::size_t recommended = 0;  // index of a row
  std::string why;              // one sentence
};

// The settings worth trying, beginning with one thread: on each cluster, on the big ones together
// and on all CPUs (or only where --cpus or --cluster say) 1, 2, 3 … threads up to the number of
// physical cores, from eight on in powers of two, and as many as there are CPUs; no more than
// --threads or the cgroup's quota allows. The largest number of each is tried without spinning too,
// unless --spin says how long.
std::vector<SweepRow> sweep_settings(const ThreadSettings& threading,
                                     const std::vector<int>& allowed,
                                     const std::filesystem::path& root);

// Chooses among measured rows: of those that are as fast as the fastest, the one with the fewest
// threads, of these the one that takes the least CPU time. As fast is a median at most 2 % larger,
// or at most 10 % where the 95 % intervals of the two medians overlap. Fills recommended and why.
void recommend(ThreadSweep& sweep);

// `loaded` has all its inputs set, and was loaded with threading.sweep, which leaves the process's
// CPU mask alone. Each setting is measured with measure_runs(), in several rounds over all
// settings, so that a slow minute of the machine falls on all of them alike; counts and seconds of
// `measure` are those of one setting, divided among the rounds. CPU mask and threads are then as
// they were. Throws as GraphExecutor::run does, and Error(kModel) when a setting gives other
// outputs than the first.
ThreadSweep run_thread_sweep(LoadedPackage& loaded, const ThreadSettings& threading,
                             const MeasureSettings& measure);

}  // namespace run_model
