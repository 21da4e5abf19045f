// Wall-clock time between two points of the program, in milliseconds.
#pragma once

#include <chrono>

namespace run_model {

inline double milliseconds(std::chrono::steady_clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

class Stopwatch {
 public:
  // Milliseconds since the construction or the previous call.
  double lap() {
    const Clock::time_point now = Clock::now();
    const double elapsed = milliseconds(now - start_);
    start_ = now;
    return elapsed;
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point start_ = Clock::now();
};

}  // namespace run_model
