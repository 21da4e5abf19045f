// The merged picture of a Photoshop file.
#pragma once

#include <string>

#include "preprocess/picture_reader.h"
#include "preprocess/stb_decode.h"

namespace run_model {

// stb_image decodes a copy of the file that has the first three channels only: of more it would
// take the fourth for transparency and change the colours by it, where Pillow gives them as stored.
// Throws Error(kImage), its sentence beginning with `what`.
RawPicture decode_psd(Bytes file, const std::string& what);

}  // namespace run_model
