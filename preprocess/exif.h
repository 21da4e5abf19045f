// The one field of a picture's metadata that changes what it shows: its orientation.
// Sources: Exif 2.32 (JEITA CP-3451), tag 0x0112, inside a TIFF 6.0 structure; XMP specification,
// part 1, property tiff:Orientation.
#pragma once

#include <cstdint>
#include <span>

namespace run_model {

inline constexpr int kOrientationNormal = 1;

// The orientation 1..8 in `exif`, the TIFF structure of an EXIF block (the bytes after "Exif\0\0"
// in JPEG, the body of PNG's eXIf chunk), or where that has none, in the packet `xmp`. Metadata
// that is damaged, has no orientation or another value gives kOrientationNormal, as in Pillow: it
// never makes a picture unreadable.
int orientation_of(std::span<const std::uint8_t> exif, std::span<const std::uint8_t> xmp = {});

}  // namespace run_model
