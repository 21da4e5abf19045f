#include "run_model/run_model/measure/cold_cache.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "runtime/cpu/caches.h"
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

constexpr std::size_t kUnknownCacheBuffer = std::size_t{64} << 20;
// What a machine of today can have; a wrong file must not ask for all of its memory.
constexpr std::size_t kMaxBuffer = std::size_t{1} << 30;
// The shortest cache line of the supported machines (Cortex-A9).
constexpr std::size_t kLine = 32;

// The outermost one that holds data.
CpuCache last_level_cache(int cpu, const std::filesystem::path& root) {
  CpuCache last;
  for (CpuCache& cache : cpu_caches(cpu, root)) {
    if (cache.holds_data() && cache.level > last.level) last = std::move(cache);
  }
  return last;
}

std::size_t buffer_bytes() {
  const std::size_t caches = last_level_cache_bytes(allowed_cpus());
  // Twice their size: no replacement policy keeps the model's lines through so much other data.
  return caches == 0 ? kUnknownCacheBuffer : std::min(2 * caches, kMaxBuffer);
}

}  // namespace

std::size_t last_level_cache_bytes(std::span<const int> cpus, const std::filesystem::path& root) {
  std::set<std::pair<int, std::vector<int>>> counted;
  std::uint64_t total = 0;
  for (const int cpu : cpus) {
    CpuCache cache = last_level_cache(cpu, root);
    if (cache.shared_by.empty()) cache.shared_by = {cpu};
    if (counted.emplace(cache.level, std::move(cache.shared_by)).second) {
      total = std::min<std::uint64_t>(total + cache.bytes, kMaxBuffer);
    }
  }
  return total;
}

CacheEvictor::CacheEvictor(ThreadPool* threads) : CacheEvictor(threads, buffer_bytes()) {}

// Written once: pages that were only ever read are all the same page of zeros to the system, and
// would take one page of the cache.
CacheEvictor::CacheEvictor(ThreadPool* threads, std::size_t bytes)
    : threads_(threads), bytes_(bytes), buffer_(new unsigned char[bytes]) {
  std::memset(buffer_.get(), 1, bytes_);
}

void CacheEvictor::evict() {
  const auto walk = [](int, int, ThreadPool::Group* group, void* data) {
    // Together, so that no thread walks twice and another not at all.
    if (group != nullptr) ThreadPool::barrier(group);
    const auto* evictor = static_cast<const CacheEvictor*>(data);
    const volatile unsigned char* bytes = evictor->buffer_.get();
    for (std::size_t i = 0; i < evictor->bytes_; i += kLine) static_cast<void>(bytes[i]);
    return 0;
  };
  if (threads_ == nullptr) {
    walk(0, 1, nullptr, this);
  } else {
    threads_->launch(walk, this);
  }
}

}  // namespace run_model
