// Whether other programs want the CPUs that this one computes on.
#pragma once

#include <chrono>
#include <cstdint>

namespace run_model {

// How often a thread was taken off its CPU though it had more to do. Once in a while that happens
// on an idle machine, too, for the kernel's own threads; it tells something when it goes on.
class Preemptions {
 public:
  // `count` is the thread's number so far, `now` in microseconds. True where it has grown twice
  // within kWindow.
  bool go_on(std::int64_t now, long count) {
    if (count == count_) return false;
    count_ = count;
    const bool again = seen_ && now - last_ < kWindow;
    seen_ = true;
    last_ = now;
    return again;
  }

  // Some time slices: on a busy CPU a thread is taken off it after each of its own, a few
  // milliseconds long.
  static constexpr std::int64_t kWindow = 30'000;

 private:
  long count_ = 0;
  bool seen_ = false;
  std::int64_t last_ = 0;
};

// What look_for_contention() has found, by any thread and not long ago.
bool cpus_are_contended();

// To be called by a thread that computes, after each piece of work: costs a look at the clock, and
// every few milliseconds a system call.
void look_for_contention();

// That there is some, which then holds for `span`: a wrong answer costs little either way, and
// whoever computes for a while on a busy machine finds out anew many times in the default.
void note_contention(std::chrono::microseconds span = std::chrono::milliseconds(200));

}  // namespace run_model
