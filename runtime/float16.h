// Half-precision numbers (IEEE 754 binary16) in software.
#pragma once

#include <cstdint>

namespace run_model {

// Exact. A signalling NaN becomes the quiet one with the same payload, as conversion instructions
// do.
float half_to_float(std::uint16_t half);

// Rounded to nearest, ties to even; too large becomes infinity, too small a subnormal or zero; a
// NaN keeps its sign and the upper bits of its payload and becomes quiet.
std::uint16_t float_to_half(float value);
std::uint16_t double_to_half(double value);

}  // namespace run_model

// The conversion helpers that compiled models call for float16 on CPUs without instructions for it,
// under the names and calling conventions that compilers use. In most machines' toolchains they are
// part of the compiler's own library; TVM's models leave them to the runtime.
//
// Two conventions are about for how a half travels, and the names do not tell which one is meant:
//   - as a 16-bit integer: __gnu_h2f_ieee and __gnu_f2h_ieee always, and __truncdfhf2 as LLVM up to
//   14
//     called it (TVM 0.7, 0.8);
//   - in a floating-point register: __extendhfsf2, __extendhfdf2, __truncsfhf2 and __truncdfhf2 as
//   LLVM
//     from 15 on and GCC from 12 on call them (TVM from 0.10 on).
// The functions that return a half therefore return it in both registers, which the calling
// conventions of x86-64 and RISC-V allow: a struct of an integer and a float comes back in one
// register of each.
#define RUN_MODEL_EXPORT __attribute__((visibility("default")))

// 32-bit Arm calls these helpers with the base convention even where floats otherwise travel in VFP
// registers (LLVM's ARMISelLowering.cpp, libgcc's config/arm/fp16.c).
#if defined(__arm__)
#define RUN_MODEL_HALF_CALL __attribute__((pcs("aapcs")))
#else
#define RUN_MODEL_HALF_CALL
#endif

#if defined(__x86_64__) || (defined(__riscv) && !defined(__riscv_float_abi_soft))
#define RUN_MODEL_HALF_IN_FLOAT_REGISTER 1
#endif

extern "C" {

#ifdef RUN_MODEL_HALF_IN_FLOAT_REGISTER
// The half is the low 16 bits of each; the other bits have no meaning.
struct RunModelHalf {
  std::uintptr_t integer;
  float in_float;
};
#else
using RunModelHalf = std::uint16_t;
#endif

RUN_MODEL_EXPORT RUN_MODEL_HALF_CALL float __gnu_h2f_ieee(std::uint16_t half);
RUN_MODEL_EXPORT RUN_MODEL_HALF_CALL RunModelHalf __gnu_f2h_ieee(float value);
RUN_MODEL_EXPORT RUN_MODEL_HALF_CALL RunModelHalf __truncdfhf2(double value);

#ifdef RUN_MODEL_HALF_IN_FLOAT_REGISTER
// `half` is a float register whose low 16 bits are the half.
RUN_MODEL_EXPORT float __extendhfsf2(float half);
RUN_MODEL_EXPORT double __extendhfdf2(float half);
RUN_MODEL_EXPORT RunModelHalf __truncsfhf2(float value);
#endif

#if defined(__arm__)
RUN_MODEL_EXPORT RUN_MODEL_HALF_CALL float __aeabi_h2f(std::uint16_t half);
RUN_MODEL_EXPORT RUN_MODEL_HALF_CALL std::uint16_t __aeabi_f2h(float value);
RUN_MODEL_EXPORT RUN_MODEL_HALF_CALL std::uint16_t __aeabi_d2h(double value);
#endif

}  // extern "C"
