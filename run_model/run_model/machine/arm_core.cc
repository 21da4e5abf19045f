#include "run_model/run_model/machine/arm_core.h"

#include <array>
#include <cstdio>

namespace run_model {
namespace {

struct Core {
  std::uint8_t implementer;
  std::uint16_t part;
  const char* name;
};

constexpr std::uint8_t kArm = 0x41;
constexpr std::uint8_t kQualcomm = 0x51;
constexpr std::uint8_t kApple = 0x61;

constexpr Core kCores[] = {
    {kArm, 0xb76, "ARM1176"},
    {kArm, 0xc05, "Cortex-A5"},
    {kArm, 0xc07, "Cortex-A7"},
    {kArm, 0xc08, "Cortex-A8"},
    {kArm, 0xc09, "Cortex-A9"},
    {kArm, 0xc0d, "Cortex-A12"},
    {kArm, 0xc0e, "Cortex-A17"},
    {kArm, 0xc0f, "Cortex-A15"},
    {kArm, 0xd01, "Cortex-A32"},
    {kArm, 0xd02, "Cortex-A34"},
    {kArm, 0xd03, "Cortex-A53"},
    {kArm, 0xd04, "Cortex-A35"},
    {kArm, 0xd05, "Cortex-A55"},
    {kArm, 0xd06, "Cortex-A65"},
    {kArm, 0xd07, "Cortex-A57"},
    {kArm, 0xd08, "Cortex-A72"},
    {kArm, 0xd09, "Cortex-A73"},
    {kArm, 0xd0a, "Cortex-A75"},
    {kArm, 0xd0b, "Cortex-A76"},
    {kArm, 0xd0c, "Neoverse-N1"},
    {kArm, 0xd0d, "Cortex-A77"},
    {kArm, 0xd0e, "Cortex-A76AE"},
    {kArm, 0xd40, "Neoverse-V1"},
    {kArm, 0xd41, "Cortex-A78"},
    {kArm, 0xd42, "Cortex-A78AE"},
    {kArm, 0xd44, "Cortex-X1"},
    {kArm, 0xd46, "Cortex-A510"},
    {kArm, 0xd47, "Cortex-A710"},
    {kArm, 0xd48, "Cortex-X2"},
    {kArm, 0xd49, "Neoverse-N2"},
    {kArm, 0xd4b, "Cortex-A78C"},
    {kArm, 0xd4c, "Cortex-X1C"},
    {kArm, 0xd4d, "Cortex-A715"},
    {kArm, 0xd4e, "Cortex-X3"},
    {kArm, 0xd4f, "Neoverse-V2"},
    {kArm, 0xd80, "Cortex-A520"},
    {kArm, 0xd81, "Cortex-A720"},
    {kArm, 0xd82, "Cortex-X4"},
    {kArm, 0xd84, "Neoverse-V3"},
    {kArm, 0xd85, "Cortex-X925"},
    {kArm, 0xd87, "Cortex-A725"},
    {kArm, 0xd8e, "Neoverse-N3"},
    {kQualcomm, 0x001, "Oryon"},
    {kQualcomm, 0x800, "Kryo 2xx Gold"},
    {kQualcomm, 0x801, "Kryo 2xx Silver"},
    {kQualcomm, 0x802, "Kryo 3xx Gold"},
    {kQualcomm, 0x803, "Kryo 3xx Silver"},
    {kQualcomm, 0x804, "Kryo 4xx Gold"},
    {kQualcomm, 0x805, "Kryo 4xx Silver"},
    {kApple, 0x022, "Icestorm (M1)"},
    {kApple, 0x023, "Firestorm (M1)"},
    {kApple, 0x032, "Blizzard (M2)"},
    {kApple, 0x033, "Avalanche (M2)"},
};

}  // namespace

std::string arm_core_name(std::uint32_t implementer, std::uint32_t part) {
  for (const Core& core : kCores) {
    if (core.implementer == implementer && core.part == part) return core.name;
  }
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "implementer 0x%02x, part 0x%03x", implementer, part);
  return text.data();
}

}  // namespace run_model
