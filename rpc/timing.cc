#include "rpc/timing.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <thread>

#include <run_model/error.h>
#include <run_model/tensor.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace run_model::rpc {
namespace {

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxRepeat = 1 << 20;

// Pushes what is in the caches out by copying other bytes.
class CacheFiller {
 public:
  explicit CacheFiller(std::int64_t bytes) {
    if (bytes == 0) return;
    source_ = Tensor::empty({bytes}, {kDLUInt, 8, 1});
    target_ = Tensor::empty({bytes}, {kDLUInt, 8, 1});
    // Pages that were never written to are all the same one.
    std::memset(source_.data(), 1, source_.nbytes());
  }

  void fill() const {
    if (source_.defined()) std::memcpy(target_.data(), source_.data(), source_.nbytes());
  }

 private:
  Tensor source_;
  Tensor target_;
};

std::int64_t longer_row(std::int64_t number, double row_ms, std::int64_t min_repeat_ms) {
  constexpr double kGrowth = 1.618;
  const double mean = row_ms / static_cast<double>(number);
  const double next = std::max(static_cast<double>(min_repeat_ms) / mean + 1,
                               static_cast<double>(number) * kGrowth);
  return static_cast<std::int64_t>(std::min(next, static_cast<double>(kMaxInt32)));
}

}  // namespace

Timing timing_arguments(const Arguments& arguments, std::size_t first, std::size_t count) {
  if (count != kTimingArgumentsOf08 && count != kTimingArgumentsOf09 && count != kTimingArguments) {
    throw Error(ErrorKind::kMismatch,
                "a measurement takes 3, 5 or 6 numbers, by the release of TVM (number, "
                "repeat, min_repeat_ms …), but " +
                    std::to_string(count) + " were given");
  }
  Timing timing;
  timing.number = arguments.integer_within(first, 1, kMaxInt32);
  timing.repeat = arguments.integer_within(first + 1, 1, kMaxRepeat);
  timing.min_repeat_ms = arguments.integer_within(first + 2, 0, kMaxInt32);
  std::size_t next = first + 3;
  if (count == kTimingArguments) {
    timing.limit_zero_time_iterations = arguments.integer_within(next++, 0, kMaxInt32);
  }
  if (count >= kTimingArgumentsOf09) {
    timing.cooldown_interval_ms = arguments.integer_within(next, 0, kMaxInt32);
    timing.repeats_to_cooldown = arguments.integer_within(next + 1, 1, kMaxInt32);
  }
  return timing;
}

std::vector<double> measure(const std::function<void()>& call, const Timing& timing,
                            const std::function<void()>& before_repeat,
                            const std::function<void()>& after_calls) {
  using SteadyClock = std::chrono::steady_clock;
  call();
  if (after_calls) after_calls();
  const CacheFiller filler(timing.cache_flush_bytes);
  std::vector<double> seconds;
  std::int64_t number = timing.number;
  for (std::int64_t i = 0; i < timing.repeat; ++i) {
    if (before_repeat) before_repeat();
    double row_ms = 0;
    std::int64_t zero_rows = 0;
    do {
      if (row_ms > 0) number = longer_row(number, row_ms, timing.min_repeat_ms);
      filler.fill();
      const SteadyClock::time_point start = SteadyClock::now();
      for (std::int64_t k = 0; k < number; ++k) call();
      if (after_calls) after_calls();
      row_ms = std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
      if (row_ms == 0) ++zero_rows;
    } while (row_ms < static_cast<double>(timing.min_repeat_ms) && number < kMaxInt32 &&
             zero_rows < timing.limit_zero_time_iterations);
    seconds.push_back(row_ms / 1e3 / static_cast<double>(number));
    if (timing.cooldown_interval_ms > 0 && i % timing.repeats_to_cooldown == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(timing.cooldown_interval_ms));
    }
  }
  return seconds;
}

Bytes bytes_of(const std::vector<double>& seconds) {
  return Bytes::copy_of(std::as_bytes(std::span(seconds)));
}

#if defined(__x86_64__) || defined(__aarch64__)

namespace {

std::size_t cache_line() {
#if defined(__aarch64__)
  // Bits 16 … 19 of the cache type register: the smallest data cache line, log2 of words of 4
  // bytes.
  std::uint64_t cache_type = 0;
  asm volatile("mrs %0, ctr_el0" : "=r"(cache_type));
  return std::size_t{4} << (cache_type >> 16 & 15);
#else
  return 64;
#endif
}

void flush_line(std::uintptr_t address) {
#if defined(__aarch64__)
  asm volatile("dc civac, %0" : : "r"(address) : "memory");
#else
  _mm_clflush(reinterpret_cast<const void*>(address));
#endif
}

void wait_for_flushes() {
#if defined(__aarch64__)
  asm volatile("dsb ish" : : : "memory");
#else
  _mm_mfence();
#endif
}

}  // namespace

void flush_from_caches(const std::vector<std::span<const std::byte>>& areas) {
  const std::size_t line = cache_line();
  for (const std::span<const std::byte> area : areas) {
    const auto start = reinterpret_cast<std::uintptr_t>(area.data());
    for (std::uintptr_t at = start & ~(line - 1); at < start + area.size(); at += line)
      flush_line(at);
  }
  wait_for_flushes();
}

#else

void flush_from_caches(const std::vector<std::span<const std::byte>>&) {
  // Written once, since pages that never were are all the same one.
  static const std::vector<unsigned char> other(kFlushBytes, 1);
  constexpr std::size_t kSmallestLine = 32;
  unsigned sum = 0;
  for (std::size_t i = 0; i < other.size(); i += kSmallestLine) {
    sum += *static_cast<const volatile unsigned char*>(&other[i]);
  }
  (void)sum;
}

#endif

}  // namespace run_model::rpc
