// Wall-clock time between two points of the program.
#pragma once

#include <chrono>

namespace run_model {

class Stopwatch {
 public:
  // Milliseconds since the construction or the previous call.
  double lap() {
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double, std::milli> elapsed = now - start_;
    start_ = now;
    return elapsed.count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace run_model
