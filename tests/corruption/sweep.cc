#include "tests/corruption/sweep.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "base/text.h"

// Operator new of this whole test program, to see how much is asked for at once.
namespace {

std::atomic<std::size_t> largest{0};

void* allocate(std::size_t bytes, std::size_t alignment) {
  std::size_t seen = largest.load(std::memory_order_relaxed);
  while (bytes > seen && !largest.compare_exchange_weak(seen, bytes)) {
  }
  std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = alignment <= alignof(std::max_align_t) ? std::malloc(bytes == 0 ? 1 : bytes)
                                                        : std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes, 1); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 1); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace run_model::corruption {

std::size_t largest_allocation() { return largest.load(); }
void reset_largest_allocation() { largest.store(0); }

// A broken reader fails on thousands of files: the first few tell enough.
constexpr int kFailuresToShow = 20;

Sweep::Sweep(std::initializer_list<ErrorKind> allowed, std::string name,
             std::size_t largest_allocation)
    : allowed_(allowed), name_(std::move(name)), largest_allocation_(largest_allocation) {}

Sweep::~Sweep() {
  EXPECT_GT(refused(), 0u);
  testing::Test::RecordProperty("accepted", std::to_string(accepted_));
  testing::Test::RecordProperty("refused", std::to_string(refused()));
}

std::size_t Sweep::refused() const {
  std::size_t sum = 0;
  for (const auto& [code, count] : refused_) sum += count;
  return sum;
}

bool Sweep::accepts(const std::string& description, const std::function<void()>& read) {
  if (testing::UnitTest::GetInstance()->current_test_info()->result()->total_part_count() >
      kFailuresToShow) {
    return false;
  }
  reset_largest_allocation();
  try {
    read();
    check_allocation(description);
    ++accepted_;
    return true;
  } catch (const Error& error) {
    check_allocation(description);
    ++refused_[error.kind()];
    EXPECT_NE(std::find(allowed_.begin(), allowed_.end(), error.kind()), allowed_.end())
        << description << ": " << error_kind_name(error.kind()) << ": " << error.what();
    check_message(description, error.what());
  } catch (const std::exception& error) {
    ADD_FAILURE() << description << ": an exception other than Error: " << error.what();
  }
  return false;
}

// Names in a damaged file end up in messages, and messages on a terminal.
void Sweep::check_message(const std::string& description, const std::string& message) const {
  EXPECT_TRUE(is_utf8(message)) << description;
  EXPECT_TRUE(std::none_of(message.begin(), message.end(),
                           [](unsigned char c) { return c < 0x20 || c == 0x7f; }))
      << description << ": control characters in: " << message;
  EXPECT_LT(message.size(), 1000u) << description << ": " << message;
  EXPECT_NE(message.find(name_), std::string::npos)
      << description << ": the file is not named: " << message;
}

void Sweep::check_allocation(const std::string& description) const {
  EXPECT_LE(largest_allocation(), largest_allocation_) << description;
}

}  // namespace run_model::corruption
