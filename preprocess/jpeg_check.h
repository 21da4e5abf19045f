// The checks that stb_image leaves out for JPEG: where the compressed data ends early it goes on
// with zeros or leaves pixels out, and so shows grey instead of a truncated or damaged part.
// Source: ITU-T T.81 (1992), annexes B, F and G.
#pragma once

#include <string>

#include "preprocess/picture_reader.h"

namespace run_model {

struct JpegInfo {
  int channels = 0;     // in the file: 1 grey, 3 colour, 4 CMYK
  int orientation = 1;  // of the first EXIF block
};

// Walks all segments up to EOI, decoding the Huffman codes of every scan without making pixels of
// them. Throws Error(kImage), its sentence beginning with `what`, when a segment is truncated or
// malformed, when a scan has fewer blocks than the picture needs, when restart markers are missing
// or out of order, when a colour component has no scan, and for pictures that need another kind of
// JPEG (arithmetic coding, lossless, 12 bits) or are larger than check_image_size allows. What lies
// after EOI is not looked at. JPEG has no checksums: a damaged byte that leaves all codes valid
// cannot be found.
JpegInfo check_jpeg(Bytes file, const std::string& what);

}  // namespace run_model
