// The threads behind the parallel loops of compiled models.
#pragma once

#include <memory>
#include <vector>

namespace run_model {

struct ThreadPoolOptions {
  // Number of threads that share the work, the calling one included. 0: default_threads().
  int threads = 0;
  // How long a thread without work busy-waits before it sleeps, in microseconds. Waking a sleeping
  // thread costs tens of microseconds, as much as a small layer; spinning costs CPU time. Cut short
  // while other programs want the same CPUs, and not done at all where there are fewer CPUs than
  // threads, or the cgroup's quota lasts for fewer.
  int spin_microseconds = 100;
  // CPU numbers that the worker threads are pinned to, one each in order (the calling thread is
  // left alone); empty: no pinning.
  std::vector<int> worker_cpus{};
};

class ThreadPool {
 public:
  // Starts threads - 1 workers: a pool of one thread has none and never synchronises. Throws
  // Error(kUsage) for a negative count, more than kMaxThreads or a CPU that cannot be pinned to,
  // std::system_error when the system refuses another thread.
  explicit ThreadPool(const ThreadPoolOptions& options = {});
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  static constexpr int kMaxThreads = 1024;

  // The environment variable's value where it is a plausible number of threads, else 0.
  static int threads_from_environment(const char* variable);

  // TVM_NUM_THREADS, else OMP_NUM_THREADS, else one for each physical core that this process may
  // use: by its CPU mask, its cgroup's CPU quota (rounded up) and the topology in sysfs. At
  // least 1.
  static int default_threads();

  // The pool that executors, and compiled functions called by themselves, share unless given one:
  // what set_shared was given last, else made on first use with default options.
  static const std::shared_ptr<ThreadPool>& shared();

  // Not while another thread computes or asks for shared(). `pool` is not null.
  static void set_shared(std::shared_ptr<ThreadPool> pool);

  int threads() const;

  // How many tasks to cut a loop into that can be cut at will: threads(), and a few for each where
  // other programs want the same CPUs, so that a thread that loses its CPU leaves little undone.
  int loop_tasks() const;

  // Calls task(index, count, group, data) for every index in [0, count), and waits for them. count
  // 0 means threads(). Which thread runs which task, and when, is open: each begins with its share
  // of neighbouring tasks, the calling thread with the first one, and then takes what others have
  // not begun; with no help from others the calling thread runs all of them. Tasks that wait for
  // each other do so by barrier(). In a child that fork() has made of the process the pool's
  // threads are missing, and others are made for each call. Called from inside a task it runs a
  // single task with count 1 (loops do not nest). Two threads that call it take turns. Returns 0,
  // or what the first task returned that returned something else. Throws std::system_error only
  // when a barrier needed more threads and they were refused; tasks must not throw.
  class Group;
  using Task = int (*)(int index, int count, Group* group, void* data);
  int launch(Task task, void* data, int count = 0);

  // Inside a task: waits until every task of the group has called it, for which more tasks than
  // threads() get threads made for this one launch. `group` is the task's argument. False where
  // these are refused: the launch then throws.
  static bool barrier(Group* group);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace run_model
