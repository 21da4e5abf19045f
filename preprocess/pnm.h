// Netpbm pictures P1 to P6 (PBM, PGM, PPM; plain and raw). Read here and not by stb_image, which
// knows only P5 and P6, does not scale by the greatest value and mistakes the byte order of 16
// bits. Source: the pbm(5), pgm(5) and ppm(5) manuals of Netpbm.
#pragma once

#include <string>

#include "preprocess/picture_reader.h"
#include "preprocess/raw_picture.h"

namespace run_model {

// Samples are scaled to 0..255 as Pillow does: round(value / greatest * 255), halves to even.
// Throws Error(kImage), its sentence beginning with `what`.
RawPicture decode_pnm(Bytes file, const std::string& what);

}  // namespace run_model
