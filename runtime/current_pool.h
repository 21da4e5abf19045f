// Which pool the parallel loops of a compiled function use: TVM's callback for them carries no
// context of ours, so the executor names its pool for the calling thread while it runs.
#pragma once

#include <run_model/thread_pool.h>

namespace run_model {

// The innermost live CurrentPool of this thread, else ThreadPool::shared().
ThreadPool& current_thread_pool();

// Makes `pool` the calling thread's pool for the object's lifetime.
class CurrentPool {
 public:
  explicit CurrentPool(ThreadPool& pool);
  ~CurrentPool();
  CurrentPool(const CurrentPool&) = delete;
  CurrentPool& operator=(const CurrentPool&) = delete;

 private:
  ThreadPool* previous_;
};

}  // namespace run_model
