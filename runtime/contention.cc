#include "runtime/contention.h"

#include <sys/resource.h>

#include <atomic>
#include <chrono>

namespace run_model {
namespace {

constexpr std::int64_t kBetweenLooks = 2'000;

// 0 while there is none. Only who ends a span looks at whether it is over, so that the question
// costs no look at the clock.
std::atomic<std::int64_t> contended_until{0};

struct Looks {
  std::int64_t last = 0;
  Preemptions preemptions;
};

std::int64_t microseconds_since_boot() {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(since_boot).count();
}

}  // namespace

bool cpus_are_contended() { return contended_until.load(std::memory_order_relaxed) != 0; }

void look_for_contention() {
  thread_local Looks looks;
  const std::int64_t now = microseconds_since_boot();
  if (now - looks.last < kBetweenLooks) return;
  looks.last = now;
  rusage usage{};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return;
  if (looks.preemptions.go_on(now, usage.ru_nivcsw)) {
    note_contention();
    return;
  }
  std::int64_t until = contended_until.load(std::memory_order_relaxed);
  if (until != 0 && until < now) {
    contended_until.compare_exchange_strong(until, 0, std::memory_order_relaxed);
  }
}

void note_contention(std::chrono::microseconds span) {
  const std::int64_t until = microseconds_since_boot() + span.count();
  if (until > contended_until.load(std::memory_order_relaxed)) {
    contended_until.store(until, std::memory_order_relaxed);
  }
}

}  // namespace run_model
