// Who runs which task of a parallel loop.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace run_model {

// The numbers 0 … count - 1, of which every thread has a share of neighbours: what it takes first,
// so that from one loop to the next it works on the same part of the data. Who has none left takes
// from the others' shares.
class TaskShares {
 public:
  explicit TaskShares(int threads)
      : threads_(threads), shares_(std::make_unique<Share[]>(static_cast<std::size_t>(threads))) {}

  // Once all that were given out before are taken. What the caller wrote before is seen by whoever
  // takes a task.
  void give_out(int count) {
    for (int i = 0; i < threads_; ++i) {
      share(i).store(packed(first_of(i, count), first_of(i + 1, count)), std::memory_order_release);
    }
  }

  // A task that nobody else has or gets, -1 where none is left. A word says both ends of what is
  // left of a share, so that a thread which comes late, even by whole loops, takes nothing or a
  // task of the loop that is being run now.
  int take(int thread) {
    for (int i = 0; i < threads_; ++i) {
      std::atomic<std::uint64_t>& from = share((thread + i) % threads_);
      std::uint64_t left = from.load(std::memory_order_relaxed);
      while (begin_of(left) < end_of(left)) {
        if (from.compare_exchange_weak(left, left + 1, std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
          return static_cast<int>(begin_of(left));
        }
      }
    }
    return -1;
  }

 private:
  // On a cache line of its own: while all work on their own shares nobody waits for another core.
  struct alignas(64) Share {
    std::atomic<std::uint64_t> range{0};
  };

  std::atomic<std::uint64_t>& share(int index) {
    return shares_[static_cast<std::size_t>(index)].range;
  }

  std::uint32_t first_of(int thread, int count) const {
    return static_cast<std::uint32_t>(std::int64_t{count} * thread / threads_);
  }

  static std::uint64_t packed(std::uint32_t begin, std::uint32_t end) {
    return std::uint64_t{end} << 32 | begin;
  }
  static std::uint32_t begin_of(std::uint64_t range) { return static_cast<std::uint32_t>(range); }
  static std::uint32_t end_of(std::uint64_t range) {
    return static_cast<std::uint32_t>(range >> 32);
  }

  const int threads_;
  const std::unique_ptr<Share[]> shares_;
};

}  // namespace run_model
