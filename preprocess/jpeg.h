// Decoding JPEG by libjpeg-turbo, whose pixels are those of Pillow: both use its exact integer
// inverse DCT and its interpolation of the colour components. Source of the format: ITU-T T.81.
#pragma once

#include <string>

#include "preprocess/picture_reader.h"
#include "preprocess/raw_picture.h"

namespace run_model {

// Baseline, progressive and arithmetic-coded pictures of 8 bits: grey, colour, and CMYK or YCCK,
// whose values are taken as Adobe's programs store them (inverted) and made RGB as in Pillow's
// convert("RGB"). Huffman tables that are missing, as in frames of Motion JPEG, are those of T.81's
// annex K.3.
//
// Throws Error(kImage), its sentence beginning with `what`, where libjpeg-turbo gives an error or a
// warning (truncated or damaged data, restart markers out of order), for colour components without
// data, for more scans than any encoder writes, and for pictures that are larger than
// check_image_size allows. What lies after the end marker is not looked at. JPEG has no checksums:
// a damaged byte that leaves all codes valid cannot be found.
RawPicture decode_jpeg(Bytes file, const std::string& what);

}  // namespace run_model
