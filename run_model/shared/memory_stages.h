// Where a run's memory goes, stage by stage, as the kernel and as the runtime account for it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/graph_executor.h>

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

// What the runtime itself has asked for, in bytes.
struct OwnMemory {
  MemoryAccount executor;      // parameters in place and copied, activations
  std::size_t workspaces = 0;  // the most that compiled functions' scratch memory was, all threads
};

// The stages, in the order of a run. load_package() marks kStageLoaded and
// kStageParametersBound.
inline constexpr char kStageStart[] = "start";
inline constexpr char kStageLoaded[] = "loaded";
inline constexpr char kStageParametersBound[] = "parameters bound";
inline constexpr char kStageFirstRun[] = "first run";
inline constexpr char kStageSteady[] = "steady";

class MemoryStages {
 public:
  struct Stage {
    std::string name;
    ProcessMemory memory;
  };

  // Disabled, mark() and finish() do nothing at all.
  explicit MemoryStages(bool enabled = false) : enabled_(enabled) {}

  bool enabled() const { return enabled_; }

  // Reads the process's memory now. A stage that is marked twice keeps the later reading.
  void mark(std::string_view stage);

  // Keeps the peak of the whole process so far, and the executor's own account.
  void finish(const GraphExecutor& executor);

  const std::vector<Stage>& stages() const { return stages_; }
  const std::optional<std::size_t>& peak_resident() const { return peak_resident_; }  // bytes
  const OwnMemory& own() const { return own_; }

 private:
  bool enabled_;
  std::vector<Stage> stages_;
  std::optional<std::size_t> peak_resident_;
  OwnMemory own_;
};

}  // namespace run_model
