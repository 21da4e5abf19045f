// Times a piece of work that is run again and again.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include <run_model/thread_pool.h>
#include "run_model/run_model/measure/measure_flags.h"
#include "run_model/run_model/measure/pacing.h"
#include "run_model/run_model/measure/statistics.h"
#include "run_model/run_model/measure/stop_rule.h"

namespace run_model {

// Times are in milliseconds.
struct TimingMeasurement {
  Statistics run;               // of the samples
  std::vector<double> samples;  // each the mean time of `number` runs
  int number = 1;
  std::size_t warm_up_runs = 0;
  double warm_up = 0.0;   // all of the warm-up
  double measured = 0.0;  // from the start of the first sample to the end of the last
  StoppedBy stopped_by = StoppedBy::kCount;
  double clock_overhead = 0.0;         // of timing a sample; contained in it, not subtracted
  std::size_t cold_cache_bytes = 0;    // walked before every sample; 0: caches as they were
  std::optional<PacingResult> pacing;  // with --fps
};

// Calls `run` as the settings say: warm-up, then samples. What `run` throws passes through. With
// cold_cache, the caches are emptied by `threads` (null: by the calling thread only), which should
// be the threads that `run` works on.
TimingMeasurement measure_runs(const std::function<void()>& run, const MeasureSettings& settings,
                               ThreadPool* threads = nullptr);

}  // namespace run_model
