#include <run_model/thread_pool.h>

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include <run_model/error.h>
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

// Tells the CPU that this is a busy-wait loop.
void cpu_relax() {
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

// Wakes all that wait for `word`, which has just changed. Whether anybody does is another word,
// which the standard library reads without ordering it behind the change: a thread that goes to
// sleep in between would be seen by neither side and sleep for good.
template <typename Word>
void wake_waiting(std::atomic<Word>& word) {
#ifndef __SANITIZE_THREAD__  // which knows no fences
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  word.notify_all();
}

// How often this process came out of a fork(). A child has the memory of its parent's pools, but
// not their threads.
std::atomic<int> forks{0};

void count_forks() {
  static const int kRegistered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  (void)kRegistered;
}

// True on a thread that is inside a task: loops do not nest.
thread_local bool inside_task = false;

int run_task(ThreadPool::Task task, int index, int count, ThreadPool::Group* group, void* data) {
  inside_task = true;
  int result = task(index, count, group, data);
  inside_task = false;
  return result;
}

void pin_thread(std::thread& thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  if (pthread_setaffinity_np(thread.native_handle(), sizeof(set), &set) != 0) {
    throw Error(ErrorKind::kUsage, "a thread cannot be pinned to CPU " + std::to_string(cpu),
                "choose among the CPUs that this process may use (taskset -cp $$ shows them)");
  }
}

}  // namespace

// The tasks of one launch. A barrier is passed when the last of them arrives, which starts the next
// generation.
class ThreadPool::Group {
 public:
  Group(int count, std::chrono::microseconds spin) : count_(count), spin_(spin) {}

  void wait_for_all() {
    std::uint32_t generation = generation_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
      // Nobody can arrive for the next generation before the current one is released.
      arrived_.store(0, std::memory_order_relaxed);
      generation_.store(generation + 1, std::memory_order_release);
      wake_waiting(generation_);
      return;
    }
    spin_then_wait(generation_, spin_,
                   [&] { return generation_.load(std::memory_order_acquire) != generation; });
  }

 private:
  const int count_;
  const std::chrono::microseconds spin_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> generation_{0};
};

class ThreadPool::Impl {
 public:
  explicit Impl(const ThreadPoolOptions& options) {
    if (options.threads < 0 || options.threads > kMaxThreads) {
      throw Error(ErrorKind::kUsage, "a pool of " + std::to_string(options.threads) +
                                         " threads was asked for, expected 0 to " +
                                         std::to_string(kMaxThreads));
    }
    count_forks();
    threads_ = options.threads > 0 ? options.threads : default_threads();
    const bool oversubscribed = threads_ > sustained_threads(allowed_cpus());
    spin_ = std::chrono::microseconds(oversubscribed ? 0 : std::max(0, options.spin_microseconds));
    try {
      for (int index = 1; index < threads_; ++index) {
        workers_.emplace_back([this, index] { work(index); });
        std::size_t worker = static_cast<std::size_t>(index - 1);
        if (worker < options.worker_cpus.size()) {
          pin_thread(workers_.back(), options.worker_cpus[worker]);
        }
      }
    } catch (...) {
      stop();
      throw;
    }
  }

  ~Impl() {
    if (has_workers()) {
      stop();
    } else {
      // There is nothing to join, and a std::thread that was not joined must not be destroyed.
      // NOLINTNEXTLINE(bugprone-unhandled-exception-at-new): without memory nothing goes on anyway.
      static auto* const kOfTheParent = new std::vector<std::thread>;
      static std::mutex mutex;
      const std::lock_guard lock(mutex);
      for (std::thread& worker : workers_) kOfTheParent->push_back(std::move(worker));
    }
  }

  int threads() const { return threads_; }

  int launch(Task task, void* data, int count) {
    if (count <= 0) count = threads_;
    if (inside_task || count == 1) return launch_one(task, data);
    if (count > threads_ || !has_workers()) return launch_on_new_threads(task, data, count);

    std::lock_guard lock(launch_mutex_);
    Group group(count, spin_);
    task_ = task;
    data_ = data;
    count_ = count;
    group_ = &group;
    result_.store(0, std::memory_order_relaxed);
    // Every worker answers, also one without a task of its own: it must have read this launch's
    // fields before the next launch may change them.
    remaining_.store(threads_ - 1, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_release);
    wake_waiting(epoch_);

    note_result(run_task(task, 0, count, &group, data));
    spin_then_wait(remaining_, spin_,
                   [&] { return remaining_.load(std::memory_order_acquire) == 0; });
    return result_.load(std::memory_order_relaxed);
  }

 private:
  // False in a child of the process that made the pool.
  bool has_workers() const { return forks.load(std::memory_order_relaxed) == forks_before_; }

  // A single task needs no other thread; called by a task, it stays inside that one.
  int launch_one(Task task, void* data) {
    Group group(1, spin_);
    bool nested = inside_task;
    int result = run_task(task, 0, 1, &group, data);
    inside_task = nested;
    return result;
  }

  // Tasks may wait for each other, so each needs a thread of its own.
  static int launch_on_new_threads(Task task, void* data, int count) {
    Group group(count, std::chrono::microseconds(0));
    std::atomic<int> result{0};
    auto run = [&](int index) {
      if (int code = run_task(task, index, count, &group, data)) result.store(code);
    };
    // Until all have started none may begin, or a refused thread would leave the others waiting.
    // It outlives the threads, which read it: they are joined where `threads` goes.
    std::atomic<int> state{0};  // 0 wait, 1 go, 2 give up
    std::vector<std::jthread> threads;
    threads.reserve(static_cast<std::size_t>(count - 1));
    try {
      for (int index = 1; index < count; ++index) {
        threads.emplace_back([&, index] {
          state.wait(0);
          if (state.load() == 1) run(index);
        });
      }
    } catch (...) {
      state.store(2);
      wake_waiting(state);
      throw;
    }
    state.store(1);
    wake_waiting(state);
    run(0);
    threads.clear();
    return result.load();
  }

  void work(int index) {
    std::uint32_t seen = 0;
    while (true) {
      spin_then_wait(epoch_, spin_, [&] { return epoch_.load(std::memory_order_acquire) != seen; });
      ++seen;
      if (stopping_.load(std::memory_order_relaxed)) return;
      if (index < count_) note_result(run_task(task_, index, count_, group_, data_));
      if (remaining_.fetch_sub(1, std::memory_order_acq_rel) == 1) wake_waiting(remaining_);
    }
  }

  void note_result(int code) {
    if (code != 0) result_.store(code, std::memory_order_relaxed);
  }

  void stop() {
    stopping_.store(true, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_release);
    wake_waiting(epoch_);
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }

  const int forks_before_ = forks.load(std::memory_order_relaxed);
  int threads_ = 1;
  std::chrono::microseconds spin_{0};
  std::mutex launch_mutex_;

  // Written by launch() before epoch_ is advanced, read by workers after they saw it advance.
  Task task_ = nullptr;
  void* data_ = nullptr;
  int count_ = 0;
  Group* group_ = nullptr;

  // On cache lines of their own: workers poll one while they count down the other.
  alignas(64) std::atomic<std::uint32_t> epoch_{0};
  alignas(64) std::atomic<int> remaining_{0};
  alignas(64) std::atomic<int> result_{0};
  std::atomic<bool> stopping_{false};

  std::vector<std::thread> workers_;
};

ThreadPool::ThreadPool(const ThreadPoolOptions& options) : impl_(std::make_unique<Impl>(options)) {}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads_from_environment(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return 0;
  int value = 0;
  auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  bool valid = error == std::errc() && *end == '\0' && value > 0;
  return valid ? std::min(value, kMaxThreads) : 0;
}

int ThreadPool::default_threads() {
  if (int threads = threads_from_environment("TVM_NUM_THREADS")) return threads;
  if (int threads = threads_from_environment("OMP_NUM_THREADS")) return threads;
  int threads = physical_cores(allowed_cpus());
  if (std::optional<int> limit = cgroup_cpu_limit()) threads = std::min(threads, *limit);
  return std::clamp(threads, 1, kMaxThreads);
}

namespace {

// Holds `first`, if not null, when it is called for the first time.
std::shared_ptr<ThreadPool>& shared_slot(const std::shared_ptr<ThreadPool>& first) {
  static std::shared_ptr<ThreadPool> pool =
      first != nullptr ? first : std::make_shared<ThreadPool>();
  return pool;
}

}  // namespace

const std::shared_ptr<ThreadPool>& ThreadPool::shared() { return shared_slot(nullptr); }

void ThreadPool::set_shared(std::shared_ptr<ThreadPool> pool) {
  std::shared_ptr<ThreadPool>& slot = shared_slot(pool);
  slot = std::move(pool);
}

int ThreadPool::threads() const { return impl_->threads(); }

int ThreadPool::launch(Task task, void* data, int count) {
  return impl_->launch(task, data, count);
}

void ThreadPool::barrier(Group* group) { group->wait_for_all(); }

}  // namespace run_model
