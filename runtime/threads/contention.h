// Whether other programs want the CPUs that this one computes on.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

namespace run_model {

// What the kernel counts of a thread: how long it has computed and has waited for a CPU though it
// had more to do, in microseconds, and how often it was given one.
struct ThreadTimes {
  std::int64_t computed = 0, waited = 0, turns = 0;
};

// Whether a thread has to share its CPU. Who only wants it now and then, as the kernel's own
// threads and other programs' short turns do on an idle machine, takes little of it away, and work
// that is cut small for its sake costs more.
class WaitingShare {
 public:
  // True where a large part of the time since it was last told was lost.
  bool go_on(const ThreadTimes& now) {
    const std::int64_t waited = now.waited - last_.waited;
    const std::int64_t all = now.computed - last_.computed + waited;
    if (all < kSpan) return false;
    const std::int64_t lost = waited - (now.turns - last_.turns) * kWakeUp;
    last_ = now;
    return lost * kLargePart >= all;
  }

  // Some time slices.
  static constexpr std::int64_t kSpan = 20'000;
  // A sixth: a program of the same priority takes half of a CPU.
  static constexpr std::int64_t kLargePart = 6;
  // A thread that was asleep waits about so long for a CPU that is idle.
  static constexpr std::int64_t kWakeUp = 50;

 private:
  ThreadTimes last_;
};

// Instead, where the kernel does not count these times: how often a thread was taken off its CPU
// though it had more to do. Once in a while that happens on an idle machine, too; it tells
// something when it goes on.
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

// Whether so many threads, of which the calling one runs already, would be more than `cpus`
// together with the others that want a CPU by the line of /proc/loadavg; false where it says no
// such thing.
bool would_contend(std::string_view loadavg, int threads, long cpus);

// To be called before so many threads begin to compute: notes contention where they would contend.
void look_for_contention(int threads);

// That there is some, which then holds for `span`: a wrong answer costs little either way, and
// whoever computes for a while on a busy machine finds out anew many times in the default.
void note_contention(std::chrono::microseconds span = std::chrono::milliseconds(200));

}  // namespace run_model
