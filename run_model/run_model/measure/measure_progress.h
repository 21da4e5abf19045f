// One line on a terminal that says how far a measurement is.
#pragma once

#include <chrono>
#include <cstddef>
#include <string_view>

namespace run_model {

// Writes to standard error, a few times a second at most. The line is gone at the end.
class MeasureProgress {
 public:
  explicit MeasureProgress(bool wanted) : wanted_(wanted) {}
  ~MeasureProgress();
  MeasureProgress(const MeasureProgress&) = delete;
  MeasureProgress& operator=(const MeasureProgress&) = delete;

  // "what 12 of 100", where `all` is not 0; with `milliseconds`, the last time taken.
  void show(std::string_view what, std::size_t done, std::size_t all, double milliseconds);

 private:
  using Clock = std::chrono::steady_clock;
  bool wanted_;
  bool shown_ = false;
  Clock::time_point last_ = Clock::now();
};

}  // namespace run_model
