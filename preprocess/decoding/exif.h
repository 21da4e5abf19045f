// The one field of a picture's metadata that changes what it shows: its orientation.
// Sources: Exif 2.32 (JEITA CP-3451), tag 0x0112, inside a TIFF 6.0 structure; XMP specification,
// part 1, property tiff:Orientation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace run_model {

inline constexpr int kOrientationNormal = 1;

// What an EXIF block begins with, but in PNG's eXIf chunk.
inline constexpr std::string_view kExifMark("Exif\0\0", 6);

// What follows `mark` where `bytes` begin with it.
std::optional<std::span<const std::uint8_t>> behind_mark(std::span<const std::uint8_t> bytes,
                                                         std::string_view mark);

// The orientation 1..8 in `exif`, the TIFF structure of an EXIF block (the bytes behind kExifMark,
// the body of PNG's eXIf chunk), or where that has none, in the packet `xmp`. Metadata that is
// damaged, has no orientation or another value gives kOrientationNormal, as in Pillow: it never
// makes a picture unreadable.
int orientation_of(std::span<const std::uint8_t> exif, std::span<const std::uint8_t> xmp = {});

}  // namespace run_model
