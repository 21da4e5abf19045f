#include "drawing/palette.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace run_model {
namespace {

// Bright, and far from each other where they follow each other.
constexpr std::array<Color, 20> kPalette{{
    {230, 25, 75},   {60, 180, 75},   {0, 130, 200},   {255, 225, 25},  {245, 130, 48},
    {145, 30, 180},  {70, 240, 240},  {240, 50, 230},  {210, 245, 60},  {250, 190, 212},
    {0, 128, 128},   {220, 190, 255}, {170, 110, 40},  {255, 250, 200}, {128, 0, 0},
    {170, 255, 195}, {128, 128, 0},   {255, 215, 180}, {0, 0, 128},     {128, 128, 128},
}};

// At every thirty-second part of Matplotlib's; what lies between on lines is at most 2 of 255 away
// from its others.
constexpr std::array<Color, 33> kInferno{{
    {0, 0, 4},       {4, 3, 18},      {11, 7, 36},     {21, 11, 55},   {33, 12, 74},
    {46, 10, 90},    {60, 9, 101},    {74, 12, 107},   {87, 16, 109},  {99, 20, 110},
    {112, 25, 110},  {125, 30, 109},  {137, 34, 106},  {150, 39, 102}, {163, 43, 97},
    {175, 49, 92},   {187, 55, 85},   {198, 62, 77},   {209, 70, 68},  {219, 79, 59},
    {227, 89, 50},   {235, 101, 40},  {241, 113, 30},  {246, 127, 20}, {249, 141, 10},
    {251, 156, 6},   {252, 171, 15},  {251, 186, 31},  {249, 202, 50}, {245, 217, 73},
    {242, 232, 101}, {243, 245, 134}, {252, 255, 164},
}};

std::uint8_t between_bytes(std::uint8_t from, std::uint8_t to, double weight) {
  return static_cast<std::uint8_t>(std::lround(from + (to - from) * weight));
}

}  // namespace

Color class_color(std::size_t index) { return kPalette[index % kPalette.size()]; }

Color inferno(double share) {
  const double place = std::clamp(share, 0.0, 1.0) * (kInferno.size() - 1);
  const std::size_t low = std::min(static_cast<std::size_t>(place), kInferno.size() - 2);
  const double weight = place - static_cast<double>(low);
  const Color &a = kInferno[low], &b = kInferno[low + 1];
  return {between_bytes(a.red, b.red, weight), between_bytes(a.green, b.green, weight),
          between_bytes(a.blue, b.blue, weight)};
}

}  // namespace run_model
