// Truevision TGA pictures.
#pragma once

#include <string>

#include "preprocess/picture_reader.h"
#include "preprocess/stb_decode.h"

namespace run_model {

// stb_image, with the columns from right to left where the header says so, which it overlooks.
// Throws Error(kImage), its sentence beginning with `what`, also for a palette that does not begin
// at entry 0, which stb_image misreads.
RawPicture decode_tga(Bytes file, const std::string& what);

}  // namespace run_model
