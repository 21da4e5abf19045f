// Times a piece of work that is run again and again: when runs start, when there are enough of
// them, and what reading the clock costs.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <run_model/thread_pool.h>
#include "run_model/run_model/measure/statistics.h"
#include "run_model/run_model/setting_groups.h"

namespace run_model {

// Milliseconds between two readings of the steady clock with nothing between them: the median of
// many tries. Every time that is taken with two readings contains it once.
double clock_overhead();

enum class StoppedBy { kCount, kSeconds, kInterval };

// "count", "seconds" or "interval".
std::string_view stopped_by_name(StoppedBy stopped_by);

class StopRule {
 public:
  explicit StopRule(const MeasureSettings& settings) : settings_(settings) {}

  // To be asked after every sample; `seconds` have passed since the first one began. Says why to
  // stop, or nothing to go on.
  std::optional<StoppedBy> after(std::span<const double> samples, double seconds);

 private:
  bool interval_reached(std::span<const double> samples);

  const MeasureSettings& settings_;
  std::size_t next_look_ = 0;
};

// Times are in milliseconds.
struct PacingResult {
  double fps = 0.0;
  // Points in time that passed while a run was still going on: as with a camera, they are left out.
  std::size_t missed = 0;
  double idle_share = 0.0;  // of the time from the first planned start to the last end
  Statistics lateness;      // from a planned start to the actual one
  Statistics latency;       // from a planned start to the end of its run
};

// Points in time, so many a second.
class PlannedStarts {
 public:
  using Clock = std::chrono::steady_clock;

  explicit PlannedStarts(double fps) : fps_(fps) {}

  // Sleeps, without busy waiting, until the next one that is not before `ready`, and returns it.
  // The first is when this is first called.
  Clock::time_point wait(Clock::time_point ready);

  double fps() const { return fps_; }
  Clock::time_point first() const { return *first_; }
  std::size_t missed() const { return missed_; }

 private:
  Clock::time_point planned(std::size_t index) const;

  double fps_;
  std::optional<Clock::time_point> first_;
  std::size_t last_ = 0;  // that was waited for
  std::size_t missed_ = 0;
};

class Pacer {
 public:
  using Clock = PlannedStarts::Clock;

  explicit Pacer(double fps) : starts_(fps) {}

  void wait() { planned_ = starts_.wait(last_end_); }

  // A run that was waited for has taken from `start` to `end`.
  void ran(Clock::time_point start, Clock::time_point end);

  PacingResult result() const;

 private:
  PlannedStarts starts_;
  Clock::time_point planned_;
  Clock::time_point last_end_;
  double busy_ = 0.0;
  std::vector<double> lateness_;
  std::vector<double> latency_;
};

// Times are in milliseconds.
struct TimingMeasurement {
  Statistics run;               // of the samples
  std::vector<double> samples;  // each the mean time of `number` runs
  int number = 1;
  int instances = 1;  // executors that ran at once, of all of which the samples are
  std::size_t warm_up_runs = 0;
  double warm_up = 0.0;   // all of the warm-up
  double measured = 0.0;  // from the start of the first sample to the end of the last
  StoppedBy stopped_by = StoppedBy::kCount;
  double clock_overhead = 0.0;         // of timing a sample; contained in it, not subtracted
  std::size_t cold_cache_bytes = 0;    // walked before every sample; 0: caches as they were
  std::optional<PacingResult> pacing;  // with --fps

  // Throughput: runs of all samples by the time measured; 0 where that was too short to tell.
  double runs_per_second() const;
};

// Calls `run` as the settings say: warm-up, then samples. What `run` throws passes through. With
// cold_cache, the caches are emptied by `threads` (null: by the calling thread only), which should
// be the threads that `run` works on.
TimingMeasurement measure_runs(const std::function<void()>& run, const MeasureSettings& settings,
                               ThreadPool* threads = nullptr);

}  // namespace run_model
