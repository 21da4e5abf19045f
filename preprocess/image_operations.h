// What is done to a whole picture besides resizing it.
#pragma once

#include <cstdint>

#include <run_model/image.h>

namespace run_model {

// The part `window` of the picture, which must lie inside.
Image crop(const Image& image, const Region& window);

// Pillow's convert("L"), in all three channels: ITU-R 601 luma in 16-bit fixed point, rounded.
Image to_gray(const Image& image);

// The picture at (left, top) of one of width x height, around it `value` in all channels.
Image pad(const Image& image, int left, int top, int width, int height, std::uint8_t value);

// The upright picture: `image` mirrored and turned as its EXIF orientation 1..8 says (Pillow's
// ImageOps.exif_transpose). 5..8 exchange width and height.
Image apply_orientation(Image image, int orientation);

}  // namespace run_model
