#include "runtime/float16_abi.h"

#include <bit>

#include "runtime/float16.h"

namespace {

RunModelHalf returned(std::uint16_t half) {
#ifdef RUN_MODEL_HALF_IN_FLOAT_REGISTER
  // RISC-V wants the bits above a narrower number in a register to be ones.
  return {half, std::bit_cast<float>(0xffff0000u | half)};
#else
  return half;
#endif
}

}  // namespace

extern "C" {

float __gnu_h2f_ieee(std::uint16_t half) { return run_model::half_to_float(half); }

RunModelHalf __gnu_f2h_ieee(float value) { return returned(run_model::float_to_half(value)); }

RunModelHalf __truncdfhf2(double value) { return returned(run_model::double_to_half(value)); }

#ifdef RUN_MODEL_HALF_IN_FLOAT_REGISTER

float __extendhfsf2(float half) {
  return run_model::half_to_float(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(half)));
}

double __extendhfdf2(float half) { return __extendhfsf2(half); }

RunModelHalf __truncsfhf2(float value) { return returned(run_model::float_to_half(value)); }

#endif

#if defined(__arm__)

float __aeabi_h2f(std::uint16_t half) { return run_model::half_to_float(half); }

std::uint16_t __aeabi_f2h(float value) { return run_model::float_to_half(value); }

std::uint16_t __aeabi_d2h(double value) { return run_model::double_to_half(value); }

#endif

}  // extern "C"
