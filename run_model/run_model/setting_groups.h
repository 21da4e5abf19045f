// What the flags of one group ask for: how runs are timed, the profile, the comparison, the
// threads.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "run_model/shared/thread_plan.h"

namespace run_model {

// A sample is the mean time of `number` runs, one straight after the other.
struct MeasureSettings {
  bool wanted = false;  // time more than the first run

  std::size_t repeat = 100;  // samples
  int number = 1;            // runs in a sample
  int instances = 1;         // executors that run at once
  double min_seconds = 0.0;  // go on beyond `repeat` until this time has been measured
  double max_seconds = 0.0;  // stop before `repeat` after this time; 0: never
  // Stop when the 95 % interval of the median is at most this share of it wide; `repeat` and
  // max_seconds then are limits.
  std::optional<double> until_interval;

  std::size_t warm_up_runs = 3;
  double warm_up_seconds = 0.0;  // warm up for at least this long as well

  bool cold_cache = false;  // empty the caches before every sample
  double fps = 0.0;         // start runs on a grid of 1/fps seconds; 0: straight after each other

  bool show_progress = true;    // on standard error, where that is a terminal
  std::filesystem::path times;  // write the samples there; empty: nowhere
};

enum class ProfileOrder { kTime, kRunning };

struct ProfileSettings {
  bool wanted = false;  // --profile, or any of the files
  bool table = false;   // --profile: part of the report; the files alone leave the report as it is
  ProfileOrder order = ProfileOrder::kTime;
  std::size_t top = 0;  // rows of the table; 0: all
  // Empty: not written.
  std::filesystem::path csv;
  std::filesystem::path trace;
  std::filesystem::path html;
  std::filesystem::path json;
};

struct CompareSettings {
  double atol = 1e-8;  // of arrays: numpy.allclose's
  double rtol = 1e-5;
  double noise = 0.02;  // of times: the smallest difference that counts
};

// All read run_flags, and throw Error(kUsage) for values out of range and flags that contradict
// each other: --profile-sort or --profile-top without a table to sort.
MeasureSettings read_measure_settings();
ThreadSettings read_thread_settings();
ProfileSettings read_profile_settings();
CompareSettings read_compare_settings();

// Throws Error(kUsage).
[[noreturn]] void refuse(const std::string& message,
                         const std::string& hint = "run_model --help shows the usage");

}  // namespace run_model
