#include "run_model/run_model/measure/cold_cache.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <utility>

#include "base/text.h"
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

constexpr std::size_t kUnknownCacheBuffer = std::size_t{64} << 20;
// What a machine of today can have; a wrong file must not ask for all of its memory.
constexpr std::size_t kMaxBuffer = std::size_t{1} << 30;
// The shortest cache line of the supported machines (Cortex-A9).
constexpr std::size_t kLine = 32;

std::string first_line(const std::filesystem::path& path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// "32768K" in bytes, as the kernel writes it; 0 for anything else.
std::size_t parse_size(std::string_view text) {
  const std::size_t value = take_number<std::size_t>(text).value_or(0);
  if (value > kMaxBuffer) return 0;
  if (text.empty()) return value;
  if (text.front() == 'K') return value << 10;
  if (text.front() == 'M' && value <= (kMaxBuffer >> 20)) return value << 20;
  return 0;
}

struct Cache {
  int level = 0;
  std::size_t bytes = 0;
  std::string shared_by;
};

// The outermost cache that holds data.
Cache last_level_cache(const std::filesystem::path& folder) {
  Cache last;
  for (int index = 0;; ++index) {
    const std::filesystem::path cache = folder / ("index" + std::to_string(index));
    const std::string level = first_line(cache / "level");
    if (level.empty()) return last;
    const std::string type = first_line(cache / "type");
    if (type == "Instruction" || level.size() != 1 || level[0] - '0' <= last.level) continue;
    last = {level[0] - '0', parse_size(first_line(cache / "size")),
            first_line(cache / "shared_cpu_list")};
  }
}

std::size_t buffer_bytes() {
  const std::size_t caches = last_level_cache_bytes(allowed_cpus());
  // Twice their size: no replacement policy keeps the model's lines through so much other data.
  return caches == 0 ? kUnknownCacheBuffer : std::min(2 * caches, kMaxBuffer);
}

}  // namespace

std::size_t last_level_cache_bytes(std::span<const int> cpus, const std::filesystem::path& root) {
  std::set<std::pair<int, std::string>> counted;
  std::size_t total = 0;
  for (const int cpu : cpus) {
    const std::string name = "cpu" + std::to_string(cpu);
    const Cache cache = last_level_cache(root / "sys/devices/system/cpu" / name / "cache");
    const std::string owner = cache.shared_by.empty() ? name : cache.shared_by;
    if (counted.emplace(cache.level, owner).second) {
      total = std::min(total + cache.bytes, kMaxBuffer);
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
