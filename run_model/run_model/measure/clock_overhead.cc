#include "run_model/run_model/measure/clock_overhead.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace run_model {

double clock_overhead() {
  using Clock = std::chrono::steady_clock;
  std::array<Clock::duration, 1001> gaps{};
  for (Clock::duration& gap : gaps) {
    const Clock::time_point start = Clock::now();
    gap = Clock::now() - start;
  }
  const auto middle = gaps.begin() + gaps.size() / 2;
  std::nth_element(gaps.begin(), middle, gaps.end());
  return std::chrono::duration<double, std::milli>(*middle).count();
}

}  // namespace run_model
