// What this CPU can do, as far as code that a compiler made for another one may ask for more.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace run_model {

// Features by LLVM's names ("avx2", "neon", "vfp4"), each with whether the CPU has it and the
// system lets programs use it. A feature that is not in the map cannot be told here.
using CpuFeatures = std::map<std::string, bool, std::less<>>;

// Of the CPU that this program runs on, read once: by CPUID on x86, elsewhere from what the kernel
// says (AT_HWCAP, and on RISC-V /proc/cpuinfo and the vector unit). Empty on other machines.
const CpuFeatures& this_cpu();

// Those of `wanted` that `cpu` is known to lack, in their order. What cannot be told is not
// missing: a newer compiler may name features that this program has never heard of.
std::vector<std::string> missing_features(std::span<const std::string> wanted,
                                          const CpuFeatures& cpu);

// Registers that CPUID gives, zero where the CPU has no such leaf, and XCR0: the register states
// that the system saves, zero where it cannot be read.
struct X86Words {
  std::uint32_t leaf1_ecx = 0;
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_ecx = 0;
  std::uint32_t leaf7_edx = 0;
  std::uint32_t leaf7_1_eax = 0;  // leaf 7, subleaf 1
  std::uint32_t leaf7_1_edx = 0;
  std::uint32_t extended1_ecx = 0;  // leaf 0x80000001
  std::uint64_t xcr0 = 0;
};

// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID, and volume 1,
// chapters 13 to 15; AMD64 Architecture Programmer's Manual, volume 3, appendix D.
CpuFeatures x86_features(const X86Words& words);

// AT_HWCAP and AT_HWCAP2 of Linux (arch/arm64/include/uapi/asm/hwcap.h).
CpuFeatures aarch64_features(std::uint64_t hwcap, std::uint64_t hwcap2);

// The same of 32-bit Arm (arch/arm/include/uapi/asm/hwcap.h), and AT_PLATFORM ("v7l", "v8l"; empty
// where there is none). Kernels before 6.2 say nothing of half precision and dot products: those
// are present or not known.
CpuFeatures arm_features(std::uint64_t hwcap, std::uint64_t hwcap2, std::string_view platform);

// AT_HWCAP of RISC-V, where bit n is the extension of the letter n; the instruction set's name as
// /proc/cpuinfo has it, "rv64imafdc_zba_zbb"; and the bits of a vector register, 0 where there are
// none or they are not those of version 1.0 of the extension. Without a name only extensions of one
// letter are known.
CpuFeatures riscv_features(std::uint64_t hwcap, std::string_view isa, std::uint64_t vector_bits);

}  // namespace run_model
