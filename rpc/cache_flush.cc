#include "rpc/cache_flush.h"

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace run_model::rpc {

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
