// What compiled functions and this runtime's callbacks for them share of a thread: TVM's interface
// carries neither the pool nor the reason of a failure.
#pragma once

#include <string>

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

// What TVMAPISetLastError was last told on this thread; empty when nothing was or after a
// clear_last_packed_error(). A parallel loop hands a worker's reason on to the thread that runs it.
const std::string& last_packed_error();

void set_last_packed_error(std::string message) noexcept;
void clear_last_packed_error() noexcept;

}  // namespace run_model
