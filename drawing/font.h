// Letters of 5 x 7 dots.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace run_model {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 7;

// Rows from top to bottom, the dot on the left in bit 4. What is not ASCII is a hollow box.
std::array<std::uint8_t, kGlyphHeight> glyph(char character);

// The text with one character for each that a person sees: those that are not ASCII become '\x7F'.
std::string drawable(std::string_view text);

}  // namespace run_model
