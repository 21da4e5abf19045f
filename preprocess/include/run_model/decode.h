// From a picture file to upright 8-bit RGB pixels.
//
// The rules, which are those of Pillow's convert("RGB") after ImageOps.exif_transpose:
//   grey         copied to all three channels
//   alpha        dropped: the colour as stored, not blended with a background
//   palette      looked up; an index beyond the palette is black
//   16 bits      the high byte in PNG (also for grey, where Pillow saturates instead) and PSD; PNM
//                samples are scaled from their greatest value and rounded
//   EXIF         orientations 1 to 8 of JPEG and PNG are applied
//   animation    the first frame
//   colour space gamma and ICC profiles are ignored
//   HDR          refused: what 8-bit values its light would have is not ours to decide
#pragma once

#include <string>

#include <run_model/image.h>
#include <run_model/picture_format.h>
#include "preprocess/picture_reader.h"

namespace run_model {

struct Picture {
  Image image;  // upright
  PictureFormat format = PictureFormat::kPng;
  int channels = 0;     // in the file, 1 to 4
  int orientation = 1;  // that was applied
};

// Decodes `file`, the whole contents of a picture file. `path` begins the sentence of an error, and
// its ending tells TGA. Throws Error(kImage) when the picture is damaged, truncated, of an unknown
// format or beyond the limits of image.h; nothing large is allocated before the header has been
// checked against them.
Picture decode_picture(Bytes file, const std::string& path);

// Reads and decodes the file at `path`. Throws Error(kFile) when it cannot be read, and as above.
Picture load_picture(const std::string& path);

}  // namespace run_model
