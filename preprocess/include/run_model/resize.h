// Resizing by name. Each resizer gives, bit for bit, what its original gives on 8-bit pictures; see
// the header of each for the version that the tests compare with.
#pragma once

#include <string_view>

#include <run_model/image.h>

namespace run_model {

enum class Resizer { kNearest, kPilBilinear, kPilBicubic, kCv2Linear };

// "nearest", "pil-bilinear", "pil-bicubic" or "cv2-linear".
std::string_view resizer_name(Resizer resizer);

// The inverse of resizer_name. Throws Error(kUsage) listing the names when `name` is none of them.
Resizer parse_resizer(std::string_view name);

// `image` resized to width x height pixels, of which only `window` is computed and returned: the
// pixels are those of resizing everything and cropping, and a crop of a long picture stays cheap.
// Throws Error(kInternal) when the window does not lie inside width x height.
Image resize(const Image& image, int width, int height, Resizer resizer, const Region& window);

// The whole resized picture.
Image resize(const Image& image, int width, int height, Resizer resizer);

}  // namespace run_model
