// What the server's loop waits for.
//
// Made anew for each round: every part of the server says what it waits for, the loop waits, and
// then every part does what can be done without waiting, whatever it was that ended the wait.
#pragma once

#include <poll.h>

#include <chrono>
#include <vector>

namespace run_model::rpc {

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

inline Clock::duration seconds_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

class PollSet {
 public:
  void watch(int fd, short events) { entries_.push_back({fd, events, 0}); }
  void wake_at(TimePoint when) {
    if (when < wake_) wake_ = when;
  }

  // Until one of them is ready or the earliest of the times has come.
  void wait();

  bool is_ready(int fd) const;

 private:
  std::vector<pollfd> entries_;
  TimePoint wake_ = TimePoint::max();
};

}  // namespace run_model::rpc
