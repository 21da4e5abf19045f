// Chooses among the targets that a model was compiled for.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "runtime/cpu/features.h"

namespace run_model {

struct TargetCandidate {
  std::string name;  // the folder's name
  std::filesystem::path library;
  // What the metadata says that the code needs of the CPU; nothing where it does not say.
  std::optional<std::vector<std::string>> features = std::nullopt;
};

// The index of the target `wanted`, or without one, of those whose library is for this machine and
// needs no feature that `cpu` is known to lack:
//   1. the one called "native";
//   2. else, of those that list features, the one whose list holds all the others' lists, as
//      x86_64_v3's holds x86_64_v2's: it makes the most of this CPU;
//   3. else the only one that fits.
// A single candidate is taken as it is, so that its own check says what is wrong with it. Throws
// Error(kUsage) when the rules leave several, Error(kFile) when `wanted` is not there,
// Error(kIncompatible) when none fits; each lists the targets. `candidates` is not empty.
std::size_t choose_target(const std::vector<TargetCandidate>& candidates, const std::string& wanted,
                          const std::filesystem::path& folder, const CpuFeatures& cpu = this_cpu());

}  // namespace run_model
