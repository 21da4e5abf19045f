#include <run_model/thread_pool.h>

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/cpu/placement.h"
#include "runtime/cpu/topology.h"
#include "runtime/threads/contention.h"
#include "runtime/threads/task_shares.h"
#include "runtime/threads/wait_word.h"

namespace run_model {
namespace {

// How often this process came out of a fork(). A child has the memory of its parent's pools, but
// not their threads.
std::atomic<int> forks{0};

void count_forks() {
  static const int kRegistered =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  (void)kRegistered;
}

// Into how many tasks a loop is cut for each thread where other programs take the CPUs away. A
// thread that loses its CPU keeps the others waiting for the rest of one task; but every task costs
// a call, and tasks that do not come out even leave a thread without work at the end of the loop.
constexpr int kContendedTasksPerThread = 4;

// About the time that waking a thread takes. Who is waited for longer has lost its CPU, which
// spinning then only keeps from it, or from whoever it waits for.
constexpr std::chrono::microseconds kContendedSpin(10);

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

// What the tasks of one launch share. They run in any order, on as many threads as there are; a
// barrier has to have all of them running at the same time, and gets threads for those that have
// none. It is passed when the last task arrives, which starts the next generation.
class ThreadPool::Group {
 public:
  // `threads` take tasks anyhow, and others that call `take_tasks` can help them.
  Group(int count, int threads, std::chrono::microseconds spin, std::function<void()> take_tasks)
      : count_(count),
        spin_(spin),
        take_tasks_(std::move(take_tasks)),
        threads_(threads),
        enough_threads_(threads >= count) {}

  ~Group() {
    for (std::thread& helper : helpers_) helper.join();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  // False, at once and for every task, where the system refuses a thread.
  bool wait_for_all() {
    if (!enough_threads_.load(std::memory_order_acquire) && !call_helpers()) return false;
    const std::uint32_t generation = generation_.load();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
      // Nobody can arrive for the next generation before the current one is released.
      arrived_.store(0, std::memory_order_relaxed);
      generation_.add(1);
      generation_.wake();
      return true;
    }
    generation_.wait(spin_, [&] { return generation_.load() != generation; });
    return true;
  }

  // Threads that last as long as the group does. Throws std::system_error when one is refused.
  void start_helpers(int count) {
    const std::lock_guard lock(mutex_);
    add_helpers(count);
  }

  // Throws what kept a barrier from getting its threads. All tasks are over.
  void rethrow_refusal() const {
    if (refusal_ != nullptr) std::rethrow_exception(refusal_);
  }

 private:
  // The first to arrive at a barrier decides for all: until it has, no other one waits.
  bool call_helpers() {
    const std::lock_guard lock(mutex_);
    if (refusal_ == nullptr && threads_ < count_) {
      try {
        add_helpers(count_ - threads_);
        enough_threads_.store(true, std::memory_order_release);
      } catch (const std::system_error&) {
        refusal_ = std::current_exception();
      }
    }
    return refusal_ == nullptr;
  }

  void add_helpers(int count) {
    for (int i = 0; i < count; ++i) {
      helpers_.emplace_back(take_tasks_);
      ++threads_;
    }
  }

  const int count_;
  const std::chrono::microseconds spin_;
  const std::function<void()> take_tasks_;
  std::mutex mutex_;
  int threads_;
  std::atomic<bool> enough_threads_;
  std::vector<std::thread> helpers_;
  std::exception_ptr refusal_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) WaitWord generation_;
};

class ThreadPool::Impl {
 public:
  explicit Impl(const ThreadPoolOptions& options)
      : threads_(checked_threads(options)),
        shares_(threads_),
        placement_(static_cast<std::size_t>(threads_ - 1)) {
    count_forks();
    if (threads_ > 1) look_for_contention(threads_);
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
      if (options.worker_cpus.empty() && !oversubscribed) {
        placement_.begin(workers_);
        if (!cpus_are_contended()) placement_.keep_clear_of_caller();
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

  int loop_tasks() const {
    return threads_ > 1 && cpus_are_contended() ? threads_ * kContendedTasksPerThread : threads_;
  }

  int launch(Task task, void* data, int count) {
    if (count <= 0) count = threads_;
    if (inside_task || count == 1) return launch_one(task, data);

    const std::lock_guard lock(launch_mutex_);
    const int threads = std::min(threads_, count);
    Group group(count, has_workers() ? threads : 1, spin(), [this] { take_tasks(0); });
    task_ = task;
    data_ = data;
    count_ = count;
    group_ = &group;
    result_.store(0, std::memory_order_relaxed);
    remaining_.set(static_cast<std::uint32_t>(count));
    shares_.give_out(count);
    start(group, threads - 1);

    // All at once, so that on an idle machine there are few words that two threads change.
    std::uint32_t done = 0;
    for (int index = shares_.take(0); index >= 0; index = shares_.take(0)) {
      run(index);
      ++done;
    }
    if (remaining_.add(0 - done) != done) {
      const bool slept = remaining_.wait(spin(), [&] { return remaining_.load() == 0; });
      if (slept) placement_.settle_caller();
    }
    look_for_contention();
    group.rethrow_refusal();
    return result_.load(std::memory_order_relaxed);
  }

 private:
  static int checked_threads(const ThreadPoolOptions& options) {
    if (options.threads < 0 || options.threads > kMaxThreads) {
      throw Error(ErrorKind::kUsage, "a pool of " + std::to_string(options.threads) +
                                         " threads was asked for, expected 0 to " +
                                         std::to_string(kMaxThreads));
    }
    return options.threads > 0 ? options.threads : default_threads();
  }

  // False in a child of the process that made the pool.
  bool has_workers() const { return forks.load(std::memory_order_relaxed) == forks_before_; }

  std::chrono::microseconds spin() const {
    return cpus_are_contended() ? std::min(spin_, kContendedSpin) : spin_;
  }

  // Lets the workers take tasks. In a child it has to be others, and without them the calling
  // thread does all by itself.
  void start(Group& group, int others) {
    if (has_workers()) {
      if (cpus_are_contended()) {
        placement_.release();
      } else if (epoch_.has_sleepers()) {
        placement_.keep_clear_of_caller();
      }
      epoch_.add(1);
      epoch_.wake();
      return;
    }
    try {
      group.start_helpers(others);
    } catch (const std::system_error&) {
    }
  }

  // A single task needs no other thread; called by a task, it stays inside that one.
  int launch_one(Task task, void* data) {
    Group group(1, 1, spin_, nullptr);
    bool nested = inside_task;
    int result = run_task(task, 0, 1, &group, data);
    inside_task = nested;
    return result;
  }

  // The fields of the launch are read only by threads that have taken one of its tasks, before
  // whose end it does not end.
  void run(int index) {
    if (const int code = run_task(task_, index, count_, group_, data_)) {
      int none = 0;
      result_.compare_exchange_strong(none, code, std::memory_order_relaxed);
    }
  }

  void take_tasks(int thread) {
    for (int index = shares_.take(thread); index >= 0; index = shares_.take(thread)) {
      run(index);
      if (remaining_.add(0 - 1U) == 1) remaining_.wake();
    }
  }

  void work(int index) {
    std::uint32_t seen = 0;
    while (true) {
      epoch_.wait(spin(), [&] { return epoch_.load() != seen; });
      seen = epoch_.load();
      if (stopping_.load(std::memory_order_relaxed)) return;
      placement_.note(static_cast<std::size_t>(index - 1));
      take_tasks(index);
      look_for_contention();
    }
  }

  void stop() {
    stopping_.store(true, std::memory_order_relaxed);
    epoch_.add(1);
    epoch_.wake();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }

  const int forks_before_ = forks.load(std::memory_order_relaxed);
  const int threads_;
  std::chrono::microseconds spin_{0};
  std::mutex launch_mutex_;

  // Of the current launch.
  Task task_ = nullptr;
  void* data_ = nullptr;
  int count_ = 0;
  Group* group_ = nullptr;
  TaskShares shares_;
  Placement placement_;

  // On cache lines of their own: workers poll one while they count down the other.
  alignas(64) WaitWord epoch_;
  alignas(64) WaitWord remaining_;
  alignas(64) std::atomic<int> result_{0};
  std::atomic<bool> stopping_{false};

  std::vector<std::thread> workers_;
};

ThreadPool::ThreadPool(const ThreadPoolOptions& options) : impl_(std::make_unique<Impl>(options)) {}

ThreadPool::~ThreadPool() = default;

int ThreadPool::threads_from_environment(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return 0;
  const int value = whole_number<int>(text).value_or(0);
  return std::clamp(value, 0, kMaxThreads);
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

int ThreadPool::loop_tasks() const { return impl_->loop_tasks(); }

int ThreadPool::launch(Task task, void* data, int count) {
  return impl_->launch(task, data, count);
}

bool ThreadPool::barrier(Group* group) { return group->wait_for_all(); }

}  // namespace run_model
