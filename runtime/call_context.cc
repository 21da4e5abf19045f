#include "runtime/call_context.h"

#include <utility>

namespace run_model {
namespace {

thread_local ThreadPool* current_pool = nullptr;

thread_local std::string last_error;

}  // namespace

ThreadPool& current_thread_pool() {
  return current_pool != nullptr ? *current_pool : *ThreadPool::shared();
}

CurrentPool::CurrentPool(ThreadPool& pool) : previous_(current_pool) { current_pool = &pool; }

CurrentPool::~CurrentPool() { current_pool = previous_; }

const std::string& last_packed_error() { return last_error; }

void set_last_packed_error(std::string message) noexcept { last_error = std::move(message); }

void clear_last_packed_error() noexcept { last_error.clear(); }

}  // namespace run_model
