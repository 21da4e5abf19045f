// The resizers that take a page of code each. All make the part `window` of `image` resized to
// width x height, which must lie inside, and differ in size from `image`.
#pragma once

#include <run_model/image.h>

namespace run_model {

enum class PilFilter { kBilinear, kBicubic };

// Pillow 13 changed the order of its two passes, and so what is rounded between them.
enum class PilRelease { k12, k13 };

// Pillow's Image.resize(size, BILINEAR or BICUBIC) on 8-bit RGB: a separable filter whose support
// grows with the reduction (antialiasing), in fixed point of 22 fractional bits, with the result
// rounded to 8 bits between the two passes. Up to release 12 the pass along the width is the first;
// from 13 on it is the second where the height is reduced much more than the width.
//
// Equal to Pillow 11.3.0 and 13.0.0 on x86-64. The filter's weights are computed in double
// precision without fused multiply-add and all else in integers, so every CPU gives the same bytes;
// Pillow's own builds for CPUs where the compiler fuses may differ from its x86-64 build in rare
// last bits.
Image resize_pil(const Image& image, int width, int height, PilFilter filter, PilRelease release,
                 const Region& window);

// OpenCV's cv::resize(…, INTER_LINEAR) on 8-bit pictures: two pixels along each axis and no
// antialiasing, weights of 11 fractional bits. A reduction to exactly half on both axes takes the
// mean of four pixels instead, as OpenCV does. Equal to OpenCV 4.11.0 on x86-64.
Image resize_cv2_linear(const Image& image, int width, int height, const Region& window);

}  // namespace run_model
