// The names of Arm's cores.
#pragma once

#include <cstdint>
#include <string>

namespace run_model {

// "Cortex-A72" for the Main ID Register's implementer and part fields; "implementer 0x41, part
// 0xfff" for one that is not known. From Arm's Technical Reference Manuals, "MIDR", and Linux's
// arch/arm64/include/asm/cputype.h.
std::string arm_core_name(std::uint32_t implementer, std::uint32_t part);

}  // namespace run_model
