// The threads behind the parallel loops of compiled models.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace run_model {

struct ThreadPoolOptions {
  // Number of threads that share the work, the calling one included. 0: default_threads().
  int threads = 0;
  // How long a thread without work busy-waits before it sleeps, in microseconds. Waking a sleeping
  // thread costs tens of microseconds, as much as a small layer; spinning costs CPU time.
  int spin_microseconds = 100;
  // CPU numbers to pin the threads to, one each, in order; empty: no pinning.
  std::vector<int> cpus;
};

class ThreadPool {
 public:
  // Starts threads - 1 workers: a pool of one thread has none and never synchronises.
  explicit ThreadPool(const ThreadPoolOptions& options = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // TVM_NUM_THREADS, else OMP_NUM_THREADS, else one for each physical core that this process may use:
  // by its CPU mask, its cgroup's CPU quota (rounded up) and the topology in sysfs. At least 1.
  static int default_threads();

  // The pool that executors share unless given one: made on first use with default options.
  static const std::shared_ptr<ThreadPool>& shared();

  int threads() const;

  // Calls task(index, count, context, data) for every index in [0, count) at the same time and waits
  // for all. count 0 means threads(). Index 0 runs on the calling thread. Called from inside a task,
  // it runs a single task with count 1 (loops do not nest). Two threads calling it take turns.
  // Returns 0, or the first non-zero value that a task returned.
  using Task = int (*)(int index, int count, void* context, void* data);
  int launch(Task task, void* data, int count);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace run_model
