// What the CPU is called.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/cpu/clusters.h"

namespace run_model {

// "AMD EPYC 9654 96-Core Processor"; on Arm the cores by name and number, strongest first: "2 x
// Cortex-A72 + 4 x Cortex-A53". From the Main ID Registers in sysfs, else /proc/cpuinfo. Empty
// where neither tells.
std::string cpu_name(const std::vector<CpuCluster>& clusters, const std::filesystem::path& root);

// "Cortex-A72" for the Main ID Register's implementer and part fields; "implementer 0x41, part
// 0xfff" for one that is not known. From Arm's Technical Reference Manuals, "MIDR", and Linux's
// arch/arm64/include/asm/cputype.h.
std::string arm_core_name(std::uint32_t implementer, std::uint32_t part);

// Whether this program, made for another kind of CPU than an x86 one, is emulated on one: what
// /proc and /sys tell is then about the emulator's machine.
bool runs_emulated(const std::filesystem::path& root);

}  // namespace run_model
