// What the decoder of a format makes.
#pragma once

#include <run_model/image.h>

namespace run_model {

struct RawPicture {
  Image image;       // as stored, before its orientation is applied
  int channels = 0;  // in the file: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha or CMYK
  int orientation = 1;  // of its EXIF metadata
};

}  // namespace run_model
