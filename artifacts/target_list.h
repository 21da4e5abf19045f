// The list of targets that the project serves: artifacts/targets.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cpu/features.h"

namespace run_model {

inline constexpr int kTargetListSchema = 1;

struct ListedTarget {
  std::string name;                   // "raspi4_aarch64", the artifact's folder
  std::string title;                  // "Raspberry Pi 4 and 400, 64-bit"
  std::string machine;                // as `uname -m` says; empty: whatever compiles it
  std::string tvm;                    // TVM's target string
  std::string preset;                 // the CMake preset that builds the programs
  std::vector<std::string> emulator;  // a command that runs its programs elsewhere; may be empty
  std::vector<std::string> features;  // of the CPU, that its code needs, by LLVM's names
};

// In the file's order. Throws Error(kFile | kFormat | kIncompatible).
std::vector<ListedTarget> read_target_list(const std::filesystem::path& path);

// The same from memory; `name` stands for the file in messages.
std::vector<ListedTarget> parse_target_list(std::string_view text, const std::string& name);

// The list as it was when this program was built.
const std::vector<ListedTarget>& built_in_targets();

// Of the targets for `machine`, as ElfTarget's target_name() or `uname -m` says it, the one that
// makes the most of `cpu`: all its features are there, and none that fits needs more of them.
// Nothing where none fits.
std::optional<ListedTarget> best_target(const std::vector<ListedTarget>& targets,
                                        std::string_view machine, const CpuFeatures& cpu);

}  // namespace run_model
