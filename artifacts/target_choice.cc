#include "artifacts/target_choice.h"

#include <algorithm>

#include <run_model/error.h>
#include "artifacts/cpu_check.h"
#include "artifacts/library_machine.h"
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::string_view kNative = "native";

using Candidates = std::vector<TargetCandidate>;

std::vector<std::string> missing_for(const TargetCandidate& candidate, const CpuFeatures& cpu) {
  if (!candidate.features) return {};
  return missing_features(*candidate.features, cpu);
}

std::string list_targets(const Candidates& candidates, const CpuFeatures& cpu) {
  std::string list;
  for (const TargetCandidate& candidate : candidates) {
    const std::string machine = library_machine(candidate.library);
    if (!list.empty()) list += ", ";
    list += candidate.name + " (" + (machine.empty() ? "no usable library" : machine);
    if (library_fits_this_machine(candidate.library)) {
      const std::vector<std::string> missing = missing_for(candidate, cpu);
      for (std::size_t i = 0; i < missing.size(); ++i) {
        list += (i == 0 ? ", needs " : " ") + missing[i];
      }
    }
    list += ")";
  }
  return list;
}

bool holds_all(const std::vector<std::string>& features, const std::vector<std::string>& others) {
  return std::all_of(others.begin(), others.end(), [&](const std::string& name) {
    return std::find(features.begin(), features.end(), name) != features.end();
  });
}

// Of `fitting`, the only one whose features hold those of all others that list any.
std::optional<std::size_t> most_demanding(const Candidates& candidates,
                                          const std::vector<std::size_t>& fitting) {
  std::optional<std::size_t> found;
  for (const std::size_t i : fitting) {
    if (!candidates[i].features) continue;
    const bool holds = std::all_of(fitting.begin(), fitting.end(), [&](std::size_t j) {
      return !candidates[j].features || holds_all(*candidates[i].features, *candidates[j].features);
    });
    if (!holds) continue;
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

}  // namespace

std::size_t choose_target(const Candidates& candidates, const std::string& wanted,
                          const std::filesystem::path& folder, const CpuFeatures& cpu) {
  if (!wanted.empty()) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].name == wanted) return i;
    }
    throw Error(ErrorKind::kFile,
                path_in_quotes(folder) + " has no target " + in_quotes(wanted) + ", but " +
                    list_targets(candidates, cpu),
                "give one of these as --target, or compile the model for it");
  }
  if (candidates.size() == 1) return 0;

  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (!library_fits_this_machine(candidates[i].library)) continue;
    if (!missing_for(candidates[i], cpu).empty()) continue;
    if (candidates[i].name == kNative) return i;
    fitting.push_back(i);
  }
  if (fitting.empty()) {
    throw Error(ErrorKind::kIncompatible,
                path_in_quotes(folder) + " has no target for this machine, but " +
                    list_targets(candidates, cpu),
                fitting_target_hint(cpu));
  }
  if (fitting.size() == 1) return fitting.front();
  if (const auto best = most_demanding(candidates, fitting)) return *best;
  throw Error(ErrorKind::kUsage,
              path_in_quotes(folder) +
                  " has several targets for this machine: " + list_targets(candidates, cpu),
              "choose one with --target");
}

}  // namespace run_model
