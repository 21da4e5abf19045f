// One line on a terminal that says how far the work is.
#pragma once

#include <chrono>
#include <string>

namespace run_model {

// Writes to standard error, where it is wanted and that is a terminal. The line is gone at the end.
class ProgressLine {
 public:
  using Clock = std::chrono::steady_clock;

  // A new line is shown when the last one has stood for `pause`.
  explicit ProgressLine(bool wanted = true, Clock::duration pause = {});
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Whether show() would show something: before putting a line together.
  bool is_due() const;

  void show(std::string line);

 private:
  bool shows_;
  Clock::duration pause_;
  Clock::time_point last_ = Clock::now();
  std::string shown_;
};

}  // namespace run_model
