// The one field of EXIF metadata that changes what a picture shows: its orientation.
// Source: Exif 2.32 (JEITA CP-3451), tag 0x0112, inside a TIFF 6.0 structure.
#pragma once

#include <cstdint>
#include <span>

namespace run_model {

inline constexpr int kOrientationNormal = 1;

// The orientation 1..8 in `bytes`, the TIFF structure of an EXIF block (the bytes after "Exif\0\0"
// in JPEG, the body of PNG's eXIf chunk). Metadata that is damaged, has no orientation or another
// value gives kOrientationNormal, as in Pillow: it never makes a picture unreadable.
int exif_orientation(std::span<const std::uint8_t> bytes);

}  // namespace run_model
