// Starts runs at fixed points in time, as a camera gives its pictures.
#pragma once

#include <chrono>
#include <cstddef>
#include <vector>

#include "run_model/run_model/measure/statistics.h"

namespace run_model {

// Times are in milliseconds.
struct PacingResult {
  double fps = 0.0;
  // Points in time that passed while a run was still going on: as with a camera, they are left out.
  std::size_t missed = 0;
  double idle_share = 0.0;  // of the time from the first planned start to the last end
  Statistics lateness;      // from a planned start to the actual one
  Statistics latency;       // from a planned start to the end of its run
};

class Pacer {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Pacer(double fps);

  // Sleeps, without busy waiting, until the next planned start that is not over yet. The first call
  // returns at once.
  void wait();

  // A run that was waited for has taken from `start` to `end`.
  void ran(Clock::time_point start, Clock::time_point end);

  PacingResult result() const;

 private:
  Clock::time_point planned(std::size_t index) const;

  double fps_;
  Clock::time_point first_;
  Clock::time_point last_end_;
  std::size_t next_ = 0;  // the planned start that wait() waits for
  std::size_t missed_ = 0;
  double busy_ = 0.0;
  std::vector<double> lateness_;
  std::vector<double> latency_;
};

}  // namespace run_model
