// Chooses among the targets that a model was compiled for.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace run_model {

struct TargetCandidate {
  std::string name;  // the folder's name
  std::filesystem::path library;
};

// The index of the target `wanted`, or without one: of those whose library is for this machine, the
// one called "native", else the only one. A single candidate is taken as it is, so that its own
// check says what is wrong with it. Throws Error(kUsage) when several fit, Error(kFile) when
// `wanted` is not there, Error(kIncompatible) when none fits; each lists the targets. `candidates`
// is not empty.
std::size_t choose_target(const std::vector<TargetCandidate>& candidates, const std::string& wanted,
                          const std::filesystem::path& folder);

}  // namespace run_model
