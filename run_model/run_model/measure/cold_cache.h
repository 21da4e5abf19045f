// Makes runs find the CPU's caches empty of the model.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

#include <run_model/thread_pool.h>

namespace run_model {

// The size of the last-level caches behind `cpus`, by <root>/sys/devices/system/cpu/cpuN/cache;
// caches that several of them share count once. 0 where the system does not tell (as many boards'
// do not).
std::size_t last_level_cache_bytes(std::span<const int> cpus,
                                   const std::filesystem::path& root = "/");

// Owns a buffer of twice the last-level caches' size, or of 64 MiB where that is not known.
class CacheEvictor {
 public:
  // The caches of the CPUs that this process may use. Null for `threads`: only the calling thread
  // walks the buffer, and the other cores' own caches keep what they hold.
  explicit CacheEvictor(ThreadPool* threads);
  CacheEvictor(ThreadPool* threads, std::size_t bytes);

  // Each thread of the pool reads the whole buffer.
  void evict();

  std::size_t bytes() const { return bytes_; }

 private:
  ThreadPool* threads_;
  std::size_t bytes_;
  std::unique_ptr<unsigned char[]> buffer_;
};

}  // namespace run_model
