// What the CPU is called.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/cpu/clusters.h"

namespace run_model {

// "AMD EPYC 9654 96-Core Processor"; on Arm the cores by name and number, strongest first: "2 x
// Cortex-A72 + 4 x Cortex-A53". From the Main ID Registers in sysfs, else /proc/cpuinfo. Empty
// where neither tells.
std::string cpu_name(const std::vector<CpuCluster>& clusters, const std::filesystem::path& root);

// Whether this program, made for another kind of CPU than an x86 one, is emulated on one: what
// /proc and /sys tell is then about the emulator's machine.
bool runs_emulated(const std::filesystem::path& root);

}  // namespace run_model
