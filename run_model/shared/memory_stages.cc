#include "run_model/shared/memory_stages.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/system_file.h"
#include "base/text.h"
#include "runtime/threads/call_context.h"

namespace run_model {
namespace {

// "1024 kB" in bytes. The kernel always writes kB there (proc(5)).
std::optional<std::size_t> kilobytes(std::string_view text) {
  auto value = take_number<std::size_t>(text);
  if (value && __builtin_mul_overflow(*value, std::size_t{1024}, &*value)) return std::nullopt;
  return value;
}

}  // namespace

ProcessMemory read_process_memory(const std::filesystem::path& root) {
  const std::string status = read_system_file(root / "proc/self/status");
  ProcessMemory memory;
  memory.resident = kilobytes(field(status, "VmRSS"));
  memory.anonymous = kilobytes(field(status, "RssAnon"));
  memory.file_backed = kilobytes(field(status, "RssFile"));
  memory.shared = kilobytes(field(status, "RssShmem"));
  memory.peak = kilobytes(field(status, "VmHWM"));
  memory.swapped = kilobytes(field(status, "VmSwap"));
  const std::string rollup = read_system_file(root / "proc/self/smaps_rollup");
  memory.proportional = kilobytes(field(rollup, "Pss"));
  return memory;
}

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
