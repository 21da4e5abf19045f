// What this CPU can do, as far as code that a compiler made for another one may ask for more.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace run_model {

// Features by LLVM's names ("avx2", "neon", "vfp4"), each with whether the CPU has it and the
// system lets programs use it. A feature that is not in the map cannot be told here.
using CpuFeatures = std::map<std::string, bool, std::less<>>;

// Of the CPU that this program runs on, read once: by CPUID on x86, elsewhere from what the kernel
// says (AT_HWCAP, and on RISC-V /proc/cpuinfo). Empty on other machines.
const CpuFeatures& this_cpu();

// Those of `wanted` that `cpu` is known to lack, in their order. What cannot be told is not
// missing: a newer compiler may name features that this program has never heard of.
std::vector<std::string> missing_features(std::span<const std::string> wanted,
                                          const CpuFeatures& cpu);

}  // namespace run_model
