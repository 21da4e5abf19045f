// Decoding by stb_image (PNG, JPEG, BMP, GIF, PSD, TGA), made safe for files from anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "preprocess/picture_reader.h"
#include "preprocess/raw_picture.h"

namespace run_model {

// Grey is copied to all three channels, alpha is dropped, and of 16 bits the high byte is kept.
// Throws Error(kImage), its sentence beginning with `what`, when the picture is malformed,
// truncated or larger than check_image_size allows.
RawPicture decode_with_stb(Bytes file, const std::string& what);

// Unpacks a zlib stream (RFC 1950) of exactly to.size() bytes; false when it is malformed or has
// another size. Its Adler-32 is not looked at.
bool inflate_with_stb(Bytes stream, std::span<std::uint8_t> to);

}  // namespace run_model
