#include "artifacts/target_choice.h"

#include "artifacts/library_machine.h"
#include "runtime/error.h"
#include "runtime/quoted.h"

namespace run_model {
namespace {

constexpr std::string_view kNative = "native";

std::string list_targets(const std::vector<TargetCandidate>& candidates) {
  std::string list;
  for (const TargetCandidate& candidate : candidates) {
    const std::string machine = library_machine(candidate.library);
    if (!list.empty()) list += ", ";
    list += candidate.name + " (" + (machine.empty() ? "no usable library" : machine) + ")";
  }
  return list;
}

}  // namespace

std::size_t choose_target(const std::vector<TargetCandidate>& candidates, const std::string& wanted,
                          const std::filesystem::path& folder) {
  if (!wanted.empty()) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].name == wanted) return i;
    }
    throw Error(ErrorCode::kFile,
                path_in_quotes(folder) + " has no target " + in_quotes(wanted) + ", but " +
                    list_targets(candidates),
                "give one of these as --target, or compile the model for it");
  }
  if (candidates.size() == 1) return 0;

  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!library_fits_this_machine(candidates[i].library)) continue;
    if (candidates[i].name == kNative) return i;
    fitting.push_back(i);
  }
  if (fitting.size() == 1) return fitting.front();
  if (fitting.empty()) {
    throw Error(
        ErrorCode::kIncompatible,
        path_in_quotes(folder) + " has no target for this machine, but " + list_targets(candidates),
        "compile the model for this machine");
  }
  throw Error(
      ErrorCode::kUsage,
      path_in_quotes(folder) + " has several targets for this machine: " + list_targets(candidates),
      "choose one with --target");
}

}  // namespace run_model
