#include "runtime/threads/call_context.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <new>
#include <utility>

#include <run_model/tensor.h>

namespace run_model {
namespace {

thread_local ThreadPool* current_pool = nullptr;

thread_local std::string last_error;
thread_local ErrorKind last_error_kind = ErrorKind::kModel;

// Sizes are rounded up to pages, so that requests of nearly the same size fit the same block.
constexpr std::size_t kPage = 4096;

// More is a mistake in the model rather than a wish, and not to be tried: systems that promise
// memory which they do not have would let it succeed.
constexpr std::uint64_t kMostBytes =
    std::min<std::uint64_t>(std::uint64_t{1} << 38, std::numeric_limits<std::size_t>::max() / 2);

// Over all threads. Blocks come and go with the first runs only, so that counting them costs
// nothing.
std::atomic<std::size_t> held_by_all{0};
std::atomic<std::size_t> most_held{0};

void note_growth(std::size_t bytes) {
  const std::size_t held = held_by_all.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  std::size_t most = most_held.load(std::memory_order_relaxed);
  while (most < held && !most_held.compare_exchange_weak(most, held, std::memory_order_relaxed)) {
  }
}

// Compiled code tells some failures in several lines; ours are a sentence each.
void join_lines(std::string& text) {
  std::size_t kept = 0;
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    const bool is_space = code <= ' ' || code == 0x7f;
    if (is_space && (kept == 0 || text[kept - 1] == ' ')) continue;
    text[kept++] = is_space ? ' ' : c;
  }
  if (kept > 0 && text[kept - 1] == ' ') --kept;
  text.resize(kept);
}

}  // namespace

ThreadPool& current_thread_pool() {
  return current_pool != nullptr ? *current_pool : *ThreadPool::shared();
}

CurrentPool::CurrentPool(ThreadPool& pool) : previous_(current_pool) { current_pool = &pool; }

CurrentPool::~CurrentPool() { current_pool = previous_; }

const std::string& last_packed_error() { return last_error; }

void set_last_packed_error(std::string message) noexcept {
  last_error = std::move(message);
  join_lines(last_error);
  last_error_kind = ErrorKind::kModel;
}

void set_last_packed_exception() noexcept {
  clear_last_packed_error();
  try {
    throw;
  } catch (const std::exception& error) {
    if (const auto* known = dynamic_cast<const Error*>(&error)) last_error_kind = known->kind();
    try {
      last_error = error.what();
    } catch (const std::bad_alloc&) {
      return;  // no reason can be told
    }
  } catch (...) {
    return;  // it has none
  }
}

ErrorKind last_packed_error_kind() { return last_error_kind; }

void clear_last_packed_error() noexcept {
  last_error.clear();
  last_error_kind = ErrorKind::kModel;
}

Workspace& Workspace::of_this_thread() {
  thread_local Workspace workspace;
  return workspace;
}

Workspace::~Workspace() {
  pool_.give_up_all([this](const BlockPool::Block& block) { discard(block); });
}

void* Workspace::allocate(std::uint64_t bytes) noexcept {
  if (bytes > kMostBytes) {
    return nullptr;
  }
  const std::size_t wanted =
      std::max((static_cast<std::size_t>(bytes) + kPage - 1) / kPage * kPage, kPage);
  try {
    pool_.reserve();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  if (void* known = pool_.lend(wanted)) return known;
  if (const auto largest = pool_.give_up_largest()) discard(*largest);
  void* memory = ::operator new(wanted, std::align_val_t{kTensorAlignment}, std::nothrow);
  if (memory != nullptr) {
    pool_.add_lent({memory, wanted});
    note_growth(wanted);
  }
  return memory;
}

bool Workspace::free(void* data) noexcept { return pool_.take_back(data); }

void Workspace::release_unused() noexcept {
  pool_.give_up_unused([this](const BlockPool::Block& block) { discard(block); });
}

std::size_t Workspace::held_bytes() const { return pool_.held_bytes(); }

std::size_t Workspace::most_held_by_all() noexcept {
  return most_held.load(std::memory_order_relaxed);
}

void Workspace::discard(const BlockPool::Block& block) noexcept {
  ::operator delete(block.memory, std::align_val_t{kTensorAlignment});
  held_by_all.fetch_sub(block.bytes, std::memory_order_relaxed);
}

}  // namespace run_model
