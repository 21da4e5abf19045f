// Nearest neighbour as the TVM-Prep wrapper does it: source index = floor(index * source / target),
// that is the pixel under the left top corner of the new pixel and not under its middle. Other
// libraries' "nearest" may differ by one pixel.
#pragma once

#include <run_model/image.h>

namespace run_model {

// The part `window` of `image` resized to width x height. The window must lie inside.
Image resize_nearest(const Image& image, int width, int height, const Region& window);

}  // namespace run_model
