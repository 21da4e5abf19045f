// The build attributes that Arm compilers leave in a library (.ARM.attributes).
#pragma once

#include "base/byte_reader.h"
#include "runtime/elf/names.h"

namespace run_model {

// What the file's Tag_ABI_VFP_args says about floating-point arguments: kHard when they are passed
// in VFP registers, kSoft for the base standard, kUnspecified when the section does not say or is
// malformed. Format: "Addenda to, and Errata in, the ABI for the Arm Architecture", build
// attributes.
FloatAbi arm_attributes_float_abi(ByteReader section);

}  // namespace run_model
