// Decoding by stb_image (PNG, JPEG, BMP, GIF, PSD, TGA), made safe for files from anywhere.
#pragma once

#include <string>

#include "preprocess/picture_reader.h"
#include "preprocess/image.h"

namespace run_model {

struct StbPicture {
  Image image;
  int channels = 0;  // in the file: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha
};

// Grey is copied to all three channels, alpha is dropped, and of 16 bits the high byte is kept.
// Throws Error(kImage), its sentence beginning with `what`, when the picture is malformed, truncated
// or larger than check_image_size allows.
StbPicture decode_with_stb(Bytes file, const std::string& what);

}  // namespace run_model
