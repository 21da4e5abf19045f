// This process's memory, as the kernel counts it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

namespace run_model {

// Bytes; nothing where this kernel does not tell.
struct ProcessMemory {
  std::optional<std::size_t> resident;     // VmRSS: pages that are in memory now
  std::optional<std::size_t> anonymous;    // RssAnon: of these, heap, stacks and written copies
  std::optional<std::size_t> file_backed;  // RssFile: of these, pages of mapped files
  std::optional<std::size_t> shared;       // RssShmem: of these, shared memory
  std::optional<std::size_t> peak;         // VmHWM: the most that `resident` ever was
  std::optional<std::size_t> swapped;      // VmSwap: pages moved out to swap
  // Pss: resident, with each page divided by the number of processes that use it.
  std::optional<std::size_t> proportional;
};

// From <root>/proc/self/status (fields since Linux 4.5) and smaps_rollup (since 4.14).
ProcessMemory read_process_memory(const std::filesystem::path& root = "/");

}  // namespace run_model
