// Keeps the threads of a pool from being put behind each other on one CPU.
#pragma once

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <thread>

namespace run_model {

// Linux likes to put a thread that is woken on the CPU of the one that wakes it. Where that one
// goes on computing, the other stays behind it until a time slice of milliseconds is over: time for
// a whole network. So the pool's workers may run everywhere but where the thread that calls them
// computes, and that one, when it is woken behind a worker, goes back. Which CPUs workers take is
// left to Linux, and where other programs want the CPUs, everything is.
class Placement {
 public:
  explicit Placement(std::size_t workers) : cpus_(std::make_unique<Cpu[]>(workers)) {}

  // Begins to keep these workers, who may run where the system lets them now, clear of the calling
  // thread. They have to live as long as anything below is called.
  void begin(std::span<std::thread> workers);

  // By the thread that calls the workers, before it wakes them. No system call where it has not
  // moved since.
  void keep_clear_of_caller();

  // By that thread, when workers have woken it.
  void settle_caller() const;

  // Lets workers run everywhere, until they are kept clear again.
  void release();

  // By the worker of this number (from 0), when it begins to work.
  void note(std::size_t worker) {
    cpus_[worker].number.store(::sched_getcpu(), std::memory_order_relaxed);
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kNone = -1;

  // On a cache line of its own, which only the worker writes.
  struct alignas(64) Cpu {
    std::atomic<int> number{kNone};
  };

  void allow(const cpu_set_t& cpus);

  const std::unique_ptr<Cpu[]> cpus_;
  std::span<std::thread> workers_;
  cpu_set_t allowed_{};
  int callers_cpu_ = kNone;  // where no worker is let
  Clock::time_point changed_;
};

}  // namespace run_model
