// Copies of GIF and PSD files without their transparency. stb_image blends or leaves out transparent
// pixels in these two formats; without transparency it gives the colours as stored, which is what
// Pillow's convert("RGB") and stb_image's other formats give.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "preprocess/picture_reader.h"

namespace run_model {

// The first frame's blocks are walked to their end. Throws Error(kImage), its sentence beginning with
// `what`, where the file is truncated or malformed.
std::vector<std::uint8_t> gif_without_transparency(Bytes file, const std::string& what);

// A picture of more than three channels keeps the first three. Throws Error(kImage) as above.
std::vector<std::uint8_t> psd_without_alpha(Bytes file, const std::string& what);

}  // namespace run_model
