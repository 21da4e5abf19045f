// PNG pictures.
#pragma once

#include <string>

#include "preprocess/picture_reader.h"
#include "preprocess/raw_picture.h"

namespace run_model {

// Checked by check_png. Pictures of 8 bits a sample without palette or interlacing, which nearly
// all photographs are, are unfiltered here in less than half of stb_image's time; the others are
// stb_image's. Throws Error(kImage), its sentence beginning with `what`.
RawPicture decode_png(Bytes file, const std::string& what);

}  // namespace run_model
