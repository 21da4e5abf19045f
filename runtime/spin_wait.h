// Waiting for a word of memory to change: first busily, for a bounded time, then asleep.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

namespace run_model {

// Tells the CPU that this is a busy-wait loop.
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || (defined(__arm__) && __ARM_ARCH >= 7)
  asm volatile("yield" ::: "memory");
#else
  // No hint that every assembler for the remaining CPUs knows.
  asm volatile("" ::: "memory");
#endif
}

// Returns once `done()` holds. `word` is what a waker changes and notifies when it may hold; done()
// must be false only if `word` will still change. The word is re-read before sleeping, so a change
// between the check and the sleep is not lost.
template <typename Word, typename Done>
void spin_then_wait(const std::atomic<Word>& word, std::chrono::microseconds spin, Done done) {
  if (done()) return;
  if (spin.count() > 0) {
    // The clock is read once in so many rounds: reading it costs about as much as a pause. The CPU
    // is offered to others as often: on a busy machine the thread that is waited for may be queued
    // behind this one, and would get to run only when the spinning ends.
    constexpr int kRoundsPerClockRead = 64;
    auto deadline = std::chrono::steady_clock::now() + spin;
    do {
      for (int i = 0; i < kRoundsPerClockRead; ++i) {
        cpu_relax();
        if (done()) return;
      }
      std::this_thread::yield();
    } while (std::chrono::steady_clock::now() < deadline);
  }
  while (true) {
    Word seen = word.load(std::memory_order_acquire);
    if (done()) return;
    word.wait(seen, std::memory_order_acquire);
  }
}

}  // namespace run_model
