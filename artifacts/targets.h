// Which targets there are (artifacts/targets.json), which of them a library was compiled for, and
// which one fits this machine and its CPU.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/package.h>
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
  std::string device{};               // "opencl", "vulkan", "cuda"; empty for the CPU alone
};

// In the file's order, those for GPUs last; what such a one says of the CPU is what the target that
// its host code is for says. Throws Error(kFile | kFormat | kIncompatible).
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

// "x86_64", "armv7l hard-float" and so on; empty when the file is no readable ELF file.
std::string library_machine(const std::filesystem::path& path);

// Whether a library of that name could be loaded into this process, going by its class, byte order
// and machine. False when the file is no readable ELF file.
bool library_fits_this_machine(const std::filesystem::path& path);

struct TargetCandidate {
  std::string name;  // the folder's name
  std::filesystem::path library;
  // What the metadata says that the code needs of the CPU; nothing where it does not say.
  std::optional<std::vector<std::string>> features = std::nullopt;
  std::string device{};  // as Metadata has it
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

// Throws Error(kIncompatible) naming the features that the metadata lists and `cpu` lacks, the
// artifact's target, and the target that would fit. Metadata that lists none says nothing, and
// neither does an artifact without metadata: those are let through.
void check_cpu(const Package& package, const CpuFeatures& cpu = this_cpu());

// "compile the model with scripts/compile_model --target x86_64_v2, which fits this CPU": what to
// do where no artifact fits `cpu` on the machine that this program was built for.
std::string fitting_target_hint(const CpuFeatures& cpu);

}  // namespace run_model
