// The first frame of a GIF picture, as Pillow's convert("RGB") gives it.
#pragma once

#include <string>

#include "preprocess/picture_reader.h"
#include "preprocess/stb_decode.h"

namespace run_model {

// stb_image decodes a copy of the file in which nothing is transparent, so that transparent pixels
// have the colour of their palette entry. Around a frame smaller than the picture lies the
// transparent colour, or the first of the palette. Throws Error(kImage), its sentence beginning
// with `what`, also where the compressed data has fewer pixels than the frame: stb_image leaves
// such pixels out.
RawPicture decode_gif(Bytes file, const std::string& what);

}  // namespace run_model
