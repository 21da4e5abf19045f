#include "runtime/cpu/placement.h"

#include <pthread.h>

namespace run_model {
namespace {

// Callers on several CPUs may take turns: a change costs a system call for each worker.
constexpr std::chrono::milliseconds kBetweenChanges(1);

}  // namespace

void Placement::begin(std::span<std::thread> workers) {
  if (!workers.empty() &&
      pthread_getaffinity_np(workers[0].native_handle(), sizeof(allowed_), &allowed_) == 0) {
    workers_ = workers;
  }
}

// A worker that the system refuses to move runs where it did.
void Placement::allow(const cpu_set_t& cpus) {
  for (std::thread& worker : workers_) {
    pthread_setaffinity_np(worker.native_handle(), sizeof(cpus), &cpus);
  }
}

void Placement::keep_clear_of_caller() {
  const int cpu = ::sched_getcpu();
  if (workers_.empty() || cpu == callers_cpu_ || cpu < 0 || cpu >= CPU_SETSIZE) return;
  const Clock::time_point now = Clock::now();
  if (now - changed_ < kBetweenChanges) return;
  changed_ = now;
  cpu_set_t others = allowed_;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) == 0) return;
  callers_cpu_ = cpu;
  allow(others);
}

void Placement::release() {
  if (callers_cpu_ == kNone) return;
  callers_cpu_ = kNone;
  allow(allowed_);
}

void Placement::settle_caller() const {
  const int cpu = ::sched_getcpu();
  if (callers_cpu_ == kNone || cpu == callers_cpu_) return;
  bool behind = false;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    behind = behind || cpus_[i].number.load(std::memory_order_relaxed) == cpu;
  }
  cpu_set_t allowed;
  if (!behind || ::sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
      !CPU_ISSET(callers_cpu_, &allowed)) {
    return;
  }
  cpu_set_t back;
  CPU_ZERO(&back);
  CPU_SET(callers_cpu_, &back);
  if (::sched_setaffinity(0, sizeof(back), &back) == 0) {
    ::sched_setaffinity(0, sizeof(allowed), &allowed);
  }
}

}  // namespace run_model
