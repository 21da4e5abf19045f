// A number that threads wait for: first awake, then asleep.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

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

// std::atomic::wait is not used: before it sleeps, the standard library gives the rest of the
// thread's time slice away a few times (sched_yield), which costs milliseconds where another
// program is queued for the CPU.
class WaitWord {
 public:
  std::uint32_t load() const { return value_.load(std::memory_order_acquire); }

  // While nobody waits and nobody else changes it.
  void set(std::uint32_t value) { value_.store(value, std::memory_order_relaxed); }

  // The value before. Who waits looks again only after wake().
  std::uint32_t add(std::uint32_t amount) {
    return value_.fetch_add(amount, std::memory_order_seq_cst);
  }

  // Lets all that wait look at the value, which has changed. Costs no system call where nobody
  // sleeps: whoever goes to sleep says so before a last look at the value.
  void wake() {
    if (sleepers_.load(std::memory_order_seq_cst) != 0) wake_sleepers();
  }

  bool has_sleepers() const { return sleepers_.load(std::memory_order_relaxed) != 0; }

  // Returns once done() holds; it must be false only if the value will still change. Looks at it
  // for `spin` without giving the CPU away, then sleeps. True where it slept.
  template <typename Done>
  bool wait(std::chrono::microseconds spin, Done done) {
    if (done() || spin_until(spin, done)) return false;
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    while (true) {
      const std::uint32_t seen = value_.load(std::memory_order_seq_cst);
      if (done()) break;
      sleep_while(seen);
    }
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    return true;
  }

 private:
  template <typename Done>
  static bool spin_until(std::chrono::microseconds spin, Done done) {
    if (spin.count() <= 0) return false;
    // Reading the clock costs about as much as a pause.
    constexpr int kRoundsPerClockRead = 64;
    const auto deadline = std::chrono::steady_clock::now() + spin;
    do {
      for (int i = 0; i < kRoundsPerClockRead; ++i) {
        cpu_relax();
        if (done()) return true;
      }
    } while (std::chrono::steady_clock::now() < deadline);
    return false;
  }

  // Returns at once where the value is not `seen` any more, and now and then without a reason.
  void sleep_while(std::uint32_t seen);
  void wake_sleepers();

  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};

}  // namespace run_model
