// The flags that say how runs are timed.
#pragma once

#include <gflags/gflags.h>

#include <cstddef>
#include <filesystem>
#include <optional>

DECLARE_int32(repeat);
DECLARE_int32(number);
DECLARE_int32(warmup);
DECLARE_double(warmup_seconds);
DECLARE_double(min_seconds);
DECLARE_double(max_seconds);
DECLARE_string(until_ci);
DECLARE_bool(cold_cache);
DECLARE_double(fps);
DECLARE_bool(print_time);
DECLARE_string(times);

namespace run_model {

// A sample is the mean time of `number` runs, one straight after the other.
struct MeasureSettings {
  bool wanted = false;  // time more than the first run

  std::size_t repeat = 100;  // samples
  int number = 1;            // runs in a sample
  double min_seconds = 0.0;  // go on beyond `repeat` until this time has been measured
  double max_seconds = 0.0;  // stop before `repeat` after this time; 0: never
  // Stop when the 95 % interval of the median is at most this share of it wide; `repeat` and
  // max_seconds then are limits.
  std::optional<double> until_interval;

  std::size_t warm_up_runs = 3;
  double warm_up_seconds = 0.0;  // warm up for at least this long as well

  bool cold_cache = false;  // empty the caches before every sample
  double fps = 0.0;         // start runs on a grid of 1/fps seconds; 0: straight after each other

  bool show_progress = false;   // on standard error
  std::filesystem::path times;  // write the samples there; empty: nowhere
};

// From gflags' flags. Throws Error(kUsage) for values out of range and flags that contradict each
// other.
MeasureSettings read_measure_settings();

}  // namespace run_model
