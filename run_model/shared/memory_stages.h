// Where a run's memory goes, stage by stage, as the kernel and as the runtime account for it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/graph_executor.h>
#include "run_model/shared/process_memory.h"

namespace run_model {

// What the runtime itself has asked for, in bytes.
struct OwnMemory {
  MemoryAccount executor;      // parameters in place and copied, activations
  std::size_t workspaces = 0;  // the most that compiled functions' scratch memory was, all threads
};

// The stages, in the order of a run. load_package() marks kLoaded and kParametersBound.
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
