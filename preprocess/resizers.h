// The resizers that take a page of code each. All make the part `window` of `image` resized to
// width x height, which must lie inside, and differ in size from `image`.
#pragma once

#include <cstdint>
#include <optional>

#include <run_model/geometry.h>
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

// What MediaPipe's ImageToTensorCalculator does on CPUs: OpenCV's cv::warpPerspective(…,
// INTER_LINEAR) of 8-bit pictures, with the corners of `region` on those of the target, so that
// pixel i of the target is taken at the place i * scale of the region, and not under its middle.
// `outside` the picture are pixels of one value, or those of its edge (BORDER_CONSTANT,
// BORDER_REPLICATE). Equal to OpenCV 4.11.0 on x86-64; the region may be as large as the picture.
Image warp_cv2_linear(const Image& image, const PictureRegion& region, int width, int height,
                      std::optional<std::uint8_t> outside, const Region& window);

}  // namespace run_model
