// What compiled functions find on the thread that calls them: its pool, scratch memory, and a place
// for the reason of a failure. TVM's interface for them carries none of these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <run_model/error.h>
#include <run_model/thread_pool.h>
#include "runtime/threads/block_pool.h"

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

// Lines of the message become one.
void set_last_packed_error(std::string message) noexcept;
// The same with the exception that is being handled, whose kind is kept.
void set_last_packed_exception() noexcept;
// The kind of the failure, for whoever makes an Error of it again; kModel where only a text was
// told, or nothing.
ErrorKind last_packed_error_kind();
void clear_last_packed_error() noexcept;

// Scratch memory for compiled functions.
//
// Compiled code frees blocks in nearly the opposite order of their allocation, and asks for the
// same sizes at every run: freed blocks are kept and handed out again. There are never more blocks
// than were in use at the same time, each as large as the largest request that it served. Not safe
// to use from two threads at once: each thread has its own.
class Workspace {
 public:
  // The calling thread's, given back to the system when the thread ends.
  static Workspace& of_this_thread();

  Workspace() = default;
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // At least `bytes` bytes aligned to kTensorAlignment; null when there is no memory.
  void* allocate(std::uint64_t bytes) noexcept;

  // False when `data` was not allocated here, or was already freed.
  bool free(void* data) noexcept;

  // Gives the blocks that are not in use back to the system.
  void release_unused() noexcept;

  // Bytes held: those in use and those kept for reuse.
  std::size_t held_bytes() const;

  // The most bytes that all threads' workspaces have held together since the program's start.
  static std::size_t most_held_by_all() noexcept;

 private:
  void discard(const BlockPool::Block& block) noexcept;

  BlockPool pool_;
};

}  // namespace run_model
