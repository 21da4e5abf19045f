#include "runtime/current_pool.h"

namespace run_model {
namespace {

thread_local ThreadPool* current_pool = nullptr;

}  // namespace

ThreadPool& current_thread_pool() {
  return current_pool != nullptr ? *current_pool : *ThreadPool::shared();
}

CurrentPool::CurrentPool(ThreadPool& pool) : previous_(current_pool) { current_pool = &pool; }

CurrentPool::~CurrentPool() { current_pool = previous_; }

}  // namespace run_model
