// The one field of EXIF metadata that changes what a picture shows: its orientation.
// Source: Exif 2.32 (JEITA CP-3451), tag 0x0112, inside a TIFF 6.0 structure.
#pragma once

#include <run_model/image.h>
#include "preprocess/picture_reader.h"

namespace run_model {

inline constexpr int kOrientationNormal = 1;

// The orientation 1..8 in `tiff`, the TIFF structure of an EXIF block (the bytes after "Exif\0\0"
// in JPEG, the body of PNG's eXIf chunk). Metadata that is damaged, has no orientation or another
// value gives kOrientationNormal, as in Pillow: it never makes a picture unreadable.
int exif_orientation(Bytes tiff);

// The upright picture: `image` mirrored and turned as its orientation 1..8 says (Pillow's
// ImageOps.exif_transpose). 5..8 exchange width and height.
Image apply_orientation(Image image, int orientation);

}  // namespace run_model
