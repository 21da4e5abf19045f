#include "run_model/shared/memory_stages.h"

#include <algorithm>

#include "runtime/workspace.h"

namespace run_model {

void MemoryStages::mark(std::string_view stage) {
  if (!enabled_) return;
  const auto known = std::find_if(stages_.begin(), stages_.end(),
                                  [&](const Stage& other) { return other.name == stage; });
  if (known != stages_.end()) stages_.erase(known);
  stages_.push_back({std::string(stage), read_process_memory()});
}

void MemoryStages::finish(const GraphExecutor& executor) {
  if (!enabled_) return;
  peak_resident_ = read_process_memory().peak;
  own_ = {executor.memory(), Workspace::most_held_by_all()};
}

}  // namespace run_model
