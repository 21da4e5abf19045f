#include "runtime/float16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace run_model {
namespace {

// The value that the bits stand for by the definition of binary16; infinity and NaN excepted.
double value_of(std::uint16_t half) {
  const int exponent = half >> 10 & 0x1f;
  const int significand = half & 0x3ff;
  const double magnitude =
      exponent == 0 ? std::ldexp(significand, -24) : std::ldexp(1024 + significand, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

bool is_nan(std::uint16_t half) { return (half & 0x7fff) > 0x7c00; }
bool is_infinite(std::uint16_t half) { return (half & 0x7fff) == 0x7c00; }

TEST(Float16Test, EveryHalfHasTheValueOfItsDefinition) {
  for (int bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float value = half_to_float(half);
    if (is_nan(half)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_NE(std::bit_cast<std::uint32_t>(value) & 0x00400000u, 0u) << "not quiet: " << bits;
    } else if (is_infinite(half)) {
      ASSERT_TRUE(std::isinf(value)) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(value), value_of(half)) << bits;
    }
    ASSERT_EQ(std::signbit(value), (half & 0x8000) != 0) << bits;
  }
}

TEST(Float16Test, EveryHalfSurvivesTheWayThereAndBack) {
  for (int bits = 0; bits <= 0xffff; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const auto expected = static_cast<std::uint16_t>(is_nan(half) ? half | 0x0200 : half);
    ASSERT_EQ(float_to_half(half_to_float(half)), expected);
    if (is_nan(half)) {
      // RISC-V forgets a NaN's sign and payload where a float becomes a double.
      ASSERT_TRUE(is_nan(double_to_half(half_to_float(half)))) << bits;
    } else {
      ASSERT_EQ(double_to_half(half_to_float(half)), half);
    }
  }
}

// Between two neighbours the half-way point goes to the even one, and what lies a hair to either
// side of it to the nearer one.
TEST(Float16Test, RoundsToNearestAndTiesToEven) {
  for (int bits = 0; bits < 0x7c00; ++bits) {
    const auto low = static_cast<std::uint16_t>(bits);
    const auto high = static_cast<std::uint16_t>(bits + 1);
    // Above the largest finite half, infinity takes the place of 2^16.
    const double next = is_infinite(high) ? 65536.0 : value_of(high);
    const double middle = (value_of(low) + next) / 2;
    const std::uint16_t even = (low & 1) == 0 ? low : high;
    for (const bool negative : {false, true}) {
      const double sign = negative ? -1.0 : 1.0;
      const auto with_sign = [negative](std::uint16_t half) {
        return static_cast<std::uint16_t>(half | (negative ? 0x8000 : 0));
      };
      ASSERT_EQ(double_to_half(sign * middle), with_sign(even)) << bits;
      ASSERT_EQ(double_to_half(sign * std::nextafter(middle, 0.0)), with_sign(low)) << bits;
      ASSERT_EQ(double_to_half(sign * std::nextafter(middle, 1e9)), with_sign(high)) << bits;
      const auto middle_float = static_cast<float>(middle);
      ASSERT_EQ(float_to_half(static_cast<float>(sign) * middle_float), with_sign(even)) << bits;
      ASSERT_EQ(float_to_half(static_cast<float>(sign) * std::nextafter(middle_float, 0.0f)),
                with_sign(low))
          << bits;
      ASSERT_EQ(float_to_half(static_cast<float>(sign) * std::nextafter(middle_float, 1e9f)),
                with_sign(high))
          << bits;
    }
  }
}

// 1 + 2^-11 + 2^-40 is nearer to 1 + 2^-10, but rounded to float first it would be a tie.
TEST(Float16Test, DoubleIsRoundedOnce) {
  const double value = 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  EXPECT_EQ(double_to_half(value), 0x3c01);
  EXPECT_EQ(float_to_half(static_cast<float>(value)), 0x3c00);
}

TEST(Float16Test, TheEndsOfTheRange) {
  constexpr double kHuge = std::numeric_limits<double>::max();
  EXPECT_EQ(double_to_half(kHuge), 0x7c00);
  EXPECT_EQ(double_to_half(-kHuge), 0xfc00);
  EXPECT_EQ(double_to_half(std::numeric_limits<double>::denorm_min()), 0x0000);
  EXPECT_EQ(double_to_half(-std::numeric_limits<double>::denorm_min()), 0x8000);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::denorm_min()), 0x0000);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(float_to_half(-0.0f), 0x8000);
  // A NaN whose payload is only in bits that a half has not must not become infinity.
  EXPECT_EQ(float_to_half(std::bit_cast<float>(0x7f800001u)), 0x7e00);
  EXPECT_EQ(double_to_half(std::bit_cast<double>(0xfff0000000000001u)), 0xfe00);
}

// The compiler's own type; GCC 12 has it under the standard's name on x86 only.
#if defined(__ARM_FP16_FORMAT_IEEE)
#define COMPILER_HALF __fp16
#elif defined(__FLT16_MANT_DIG__)
#define COMPILER_HALF _Float16
#endif

#ifdef COMPILER_HALF

TEST(Float16Test, AgreesWithTheCompiler) {
  // Every 4099th float: a prime step, so that all fields take all kinds of values.
  for (std::uint64_t bits = 0; bits <= 0xffffffffu; bits += 4099) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isnan(value)) {
      continue;
    }
    const auto expected = std::bit_cast<std::uint16_t>(static_cast<COMPILER_HALF>(value));
    ASSERT_EQ(float_to_half(value), expected) << bits;
  }
}

#endif

}  // namespace
}  // namespace run_model
