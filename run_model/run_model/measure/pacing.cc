#include "run_model/run_model/measure/pacing.h"

#include <thread>

namespace run_model {
namespace {

double milliseconds(Pacer::Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

}  // namespace

Pacer::Pacer(double fps) : fps_(fps) {}

// From the first start instead of the previous one: rounding does not add up.
Pacer::Clock::time_point Pacer::planned(std::size_t index) const {
  const std::chrono::duration<double> offset(static_cast<double>(index) / fps_);
  return first_ + std::chrono::duration_cast<Clock::duration>(offset);
}

void Pacer::wait() {
  if (latency_.empty()) {
    first_ = last_end_ = Clock::now();
    return;
  }
  ++next_;
  for (; planned(next_) < last_end_; ++next_) ++missed_;
  std::this_thread::sleep_until(planned(next_));
}

void Pacer::ran(Clock::time_point start, Clock::time_point end) {
  lateness_.push_back(milliseconds(start - planned(next_)));
  latency_.push_back(milliseconds(end - planned(next_)));
  busy_ += milliseconds(end - start);
  last_end_ = end;
}

PacingResult Pacer::result() const {
  PacingResult result;
  result.fps = fps_;
  result.missed = missed_;
  const double total = milliseconds(last_end_ - first_);
  if (total > 0) result.idle_share = 1 - busy_ / total;
  result.lateness = describe(lateness_);
  result.latency = describe(latency_);
  return result;
}

}  // namespace run_model
