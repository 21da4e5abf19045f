#include "runtime/float16.h"

#include <bit>
#include <type_traits>

namespace run_model {
namespace {

// Fields of binary16: 1 sign bit, 5 exponent bits, 10 bits of significand.
constexpr int kHalfBits = 10;
constexpr int kHalfBias = 15;
constexpr std::uint16_t kHalfInfinity = 0x7c00;
constexpr std::uint16_t kHalfQuiet = 0x0200;

// From binary32 (23 bits of significand, bias 127) or binary64 (52, 1023). Straight from double: by
// way of float it would be rounded twice.
template <typename Float, typename Bits, int kBits, int kBias>
std::uint16_t round_to_half(Float value) {
  static_assert(sizeof(Float) == sizeof(Bits));
  constexpr int kWidth = 8 * sizeof(Bits);
  constexpr Bits kOne = 1;
  constexpr Bits kSignificand = (kOne << kBits) - 1;
  constexpr int kMaxExponent = 2 * kBias + 1;

  const Bits bits = std::bit_cast<Bits>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> (kWidth - 1) << 15);
  const int exponent = static_cast<int>(bits >> kBits) & kMaxExponent;
  const Bits significand = bits & kSignificand;

  if (exponent == kMaxExponent) {
    if (significand == 0) {
      return sign | kHalfInfinity;
    }
    return static_cast<std::uint16_t>(sign | kHalfInfinity | kHalfQuiet |
                                      (significand >> (kBits - kHalfBits)));
  }
  const int half_exponent = exponent - kBias + kHalfBias;
  if (half_exponent > 30) {
    return sign | kHalfInfinity;
  }
  // Below half of the smallest subnormal everything is zero, the input's own subnormals included.
  if (half_exponent < -kHalfBits) {
    return sign;
  }
  // The significand with its leading one, to be shifted right; a subnormal half by so much more.
  // The leading one and a carry out of the rounding both land in the exponent field, as they
  // should.
  const int shift = kBits - kHalfBits + (half_exponent < 1 ? 1 - half_exponent : 0);
  const Bits full = significand | kOne << kBits;
  const Bits rest = full & ((kOne << shift) - 1);
  const Bits half_way = kOne << (shift - 1);
  Bits result = full >> shift;
  if (half_exponent > 1) {
    result += static_cast<Bits>(half_exponent - 1) << kHalfBits;
  }
  if (rest > half_way || (rest == half_way && (result & 1) != 0)) {
    ++result;
  }
  return static_cast<std::uint16_t>(sign | result);
}

}  // namespace

float half_to_float(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t exponent = half >> kHalfBits & 0x1f;
  const std::uint32_t significand = half & 0x3ff;
  if (exponent == 0x1f) {
    const std::uint32_t quiet = significand != 0 ? 0x00400000 : 0;
    return std::bit_cast<float>(sign | 0x7f800000 | quiet | significand << 13);
  }
  if (exponent != 0) {
    return std::bit_cast<float>(sign | (exponent + 127 - kHalfBias) << 23 | significand << 13);
  }
  if (significand == 0) {
    return std::bit_cast<float>(sign);
  }
  // A subnormal: shift until the leading one is in place, which in a float is not stored.
  const int shift = std::countl_zero(significand) - (31 - kHalfBits);
  const auto float_exponent = static_cast<std::uint32_t>(127 - kHalfBias + 1 - shift);
  return std::bit_cast<float>(sign | float_exponent << 23 |
                              (significand << (shift + 13) & 0x007fffff));
}

std::uint16_t float_to_half(float value) {
  return round_to_half<float, std::uint32_t, 23, 127>(value);
}

std::uint16_t double_to_half(double value) {
  return round_to_half<double, std::uint64_t, 52, 1023>(value);
}

}  // namespace run_model

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
