// Resizing by name. Each resizer gives, bit for bit, what its original gives on 8-bit pictures.
#pragma once

#include <string_view>

#include <run_model/image.h>

namespace run_model {

enum class Resizer {
  // The pixel under the left top corner of the new pixel, not under its middle, as the TVM-Prep
  // wrapper takes it.
  kNearest,
  // Pillow's Image.resize with BILINEAR and BICUBIC, releases up to 12 (tested with 11.3.0).
  kPilBilinear,
  kPilBicubic,
  // Pillow's NEAREST, of every release: the pixel under the middle of the new one.
  kPilNearest,
  // The two from release 13 on (tested with 13.0.0), which begins with the height where that is
  // reduced much more than the width: some pixels of such pictures differ by one level.
  kPil13Bilinear,
  kPil13Bicubic,
  kCv2Linear,  // OpenCV's INTER_LINEAR (tested with 4.11.0)
  // OpenCV's warpPerspective with INTER_LINEAR, corners on corners, as MediaPipe has it: pixel i is
  // taken at the place i * scale, and not under its middle.
  kCv2Warp,
};

// "nearest", "pil-bilinear", "pil-bicubic", "pil-nearest", "pil13-bilinear", "pil13-bicubic",
// "cv2-linear" or "cv2-warp".
std::string_view resizer_name(Resizer resizer);

// The inverse of resizer_name. Throws Error(kUsage) listing the names when `name` is none of them.
Resizer parse_resizer(std::string_view name);

// `image` resized to width x height pixels, of which only `window` is computed and returned: the
// pixels are those of resizing everything and cropping, and a crop of a long picture stays cheap.
// Throws Error(kInternal) when the window does not lie inside width x height, Error(kImage) when
// the image or the window has no pixels or is beyond the limits of image.h.
Image resize(const Image& image, int width, int height, Resizer resizer, const Region& window);

// The whole resized picture.
Image resize(const Image& image, int width, int height, Resizer resizer);

}  // namespace run_model
