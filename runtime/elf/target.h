// The machine that a library is for: header fields, their words, and the target strings that belong
// to them.
#pragma once

#include <cstdint>
#include <string>

#include "base/byte_reader.h"

namespace run_model {

// How floating-point arguments are passed: part of the ABI on Arm and RISC-V.
enum class FloatAbi {
  kUnspecified,  // the machine has only one way, or the file does not say
  kSoft,         // in integer registers
  kSingle,       // RISC-V: float in floating-point registers
  kHard,         // Arm: VFP registers; RISC-V: up to double in floating-point registers
  kQuad,         // RISC-V: up to long double in floating-point registers
};

// What decides whether code can run at all.
struct ElfTarget {
  std::uint16_t machine = 0;  // e_machine: EM_X86_64, EM_AARCH64 …
  int bits = 64;              // 32 or 64
  bool little_endian = true;
  FloatAbi float_abi = FloatAbi::kUnspecified;
};

// Whether a library for `library` can be loaded on `host`. A float ABI that one of them leaves
// unspecified fits any.
bool target_fits(const ElfTarget& library, const ElfTarget& host);

// As uname -m and TVM's metadata write them: "x86_64", "aarch64", "armv7l hard-float", "riscv64".
// "machine 1234" for one without a name here.
std::string target_name(const ElfTarget& target);

// The LLVM triple of Linux on such a machine, as for TVM's -mtriple=; empty when not known.
std::string target_triple(const ElfTarget& target);

// What the file's Tag_ABI_VFP_args says about floating-point arguments: kHard when they are passed
// in VFP registers, kSoft for the base standard, kUnspecified when the section does not say or is
// malformed. Format: "Addenda to, and Errata in, the ABI for the Arm Architecture", build
// attributes.
FloatAbi arm_attributes_float_abi(ByteReader section);

}  // namespace run_model
