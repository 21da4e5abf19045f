// The checks that stb_image leaves out for PNG: it reads past a wrong checksum and so shows a
// damaged picture as if it were sound. Source: PNG specification, second edition (ISO/IEC 15948),
// clause 5.
#pragma once

#include <string>
#include <vector>

#include "preprocess/picture_reader.h"

namespace run_model {

enum PngColor : int { kPngGray = 0, kPngRgb = 2, kPngPalette = 3, kPngGrayAlpha = 4, kPngRgba = 6 };

// What the chunks say.
struct PngInfo {
  int width = 0;
  int height = 0;
  int depth = 0;  // bits a sample
  int color = 0;  // PngColor, or a number that means none
  bool interlaced = false;
  int orientation = 1;      // of the eXIf chunk
  std::vector<Bytes> data;  // the bodies of the IDAT chunks
};

// Walks the chunks from IHDR to IEND and compares every CRC-32. Bytes after IEND are not looked at.
// Throws Error(kImage), its sentence beginning with `what`, at the first chunk that is truncated,
// damaged or out of place, and when the picture is larger than check_image_size allows.
PngInfo check_png(Bytes file, const std::string& what);

}  // namespace run_model
