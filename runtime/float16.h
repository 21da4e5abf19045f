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
