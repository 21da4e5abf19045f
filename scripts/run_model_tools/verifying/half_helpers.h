/* The conversions of half-precision numbers that LLVM leaves to a library on CPUs without
 * instructions for them, with the conventions of LLVM 15 and later. */
#ifndef RUN_MODEL_HALF_HELPERS_H_
#define RUN_MODEL_HALF_HELPERS_H_

#include <stdint.h>
#include <string.h>

#define HALF_EXPORT __attribute__((visibility("default")))

/* Where compilers pass a half in a floating-point register, a struct of an integer and a float
 * comes back in one register of each kind, and so serves callers of either convention. */
#if defined(__x86_64__) || (defined(__riscv) && !defined(__riscv_float_abi_soft))
#define HALF_IN_FLOAT_REGISTER 1
typedef struct {
  uintptr_t integer;
  float in_float;
} Half;
#else
typedef uint16_t Half;
#endif

/* These helpers keep the base convention on 32-bit Arm, whatever the rest of the program has. */
#if defined(__arm__)
#define HALF_CALL __attribute__((pcs("aapcs")))
#else
#define HALF_CALL
#endif

static float half_to_float(uint16_t half) {
  const uint32_t exponent = half >> 10 & 31, fraction = half & 1023;
  float value;
  if (exponent == 0) {
    value = (float)fraction * 0x1p-24f;
  } else {
    const uint32_t wide = exponent == 31 ? 255 : exponent + 112;
    const uint32_t bits = wide << 23 | fraction << 13;
    memcpy(&value, &bits, sizeof value);
  }
  return half & 0x8000 ? -value : value;
}

/* To nearest, ties to even: the rounding is that of adding a number whose last place is the half's,
 * in double precision, of which neither a float nor the double itself needs all places. */
static uint16_t double_to_half(double value) {
  const uint16_t sign = __builtin_signbit(value) ? 0x8000 : 0;
  if (value != value) return sign | 0x7e00;
  if (sign) value = -value;
  if (value >= 65520.0) return sign | 0x7c00;
  int exponent = -13;
  if (value > 0) __builtin_frexp(value, &exponent);
  const int unit = (exponent < -13 ? -13 : exponent) - 11;
  const double scaled = __builtin_ldexp(value, -unit);
  const uint32_t below = (uint32_t)scaled;
  const double rest = scaled - below;
  const uint32_t rounded = below + (rest > 0.5 || (rest == 0.5 && (below & 1)));
  /* A fraction that rounds up to 2048 carries into the exponent, as it should. */
  return sign | (uint16_t)((uint32_t)(unit + 24) * 1024 + rounded);
}

static Half as_half(uint16_t bits) {
#ifdef HALF_IN_FLOAT_REGISTER
  Half result = {bits, 0};
  const uint32_t wide = bits;
  memcpy(&result.in_float, &wide, sizeof wide);
  return result;
#else
  return bits;
#endif
}

HALF_EXPORT HALF_CALL float __gnu_h2f_ieee(uint16_t half) { return half_to_float(half); }
HALF_EXPORT HALF_CALL Half __gnu_f2h_ieee(float value) { return as_half(double_to_half(value)); }
HALF_EXPORT HALF_CALL Half __truncdfhf2(double value) { return as_half(double_to_half(value)); }

#ifdef HALF_IN_FLOAT_REGISTER
static uint16_t low_bits(float half) {
  uint32_t bits;
  memcpy(&bits, &half, sizeof bits);
  return (uint16_t)bits;
}

HALF_EXPORT float __extendhfsf2(float half) { return half_to_float(low_bits(half)); }
HALF_EXPORT double __extendhfdf2(float half) { return half_to_float(low_bits(half)); }
HALF_EXPORT Half __truncsfhf2(float value) { return as_half(double_to_half(value)); }
#endif

#if defined(__arm__)
HALF_EXPORT HALF_CALL float __aeabi_h2f(uint16_t half) { return half_to_float(half); }
HALF_EXPORT HALF_CALL uint16_t __aeabi_f2h(float value) { return double_to_half(value); }
HALF_EXPORT HALF_CALL uint16_t __aeabi_d2h(double value) { return double_to_half(value); }
#endif

#endif
