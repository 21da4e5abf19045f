// OpenCV's cv::resize(…, INTER_LINEAR) on 8-bit pictures: two pixels along each axis and no
// antialiasing, weights of 11 fractional bits. A reduction to exactly half on both axes takes the
// mean of four pixels instead, as OpenCV does. Equal to OpenCV 4.11.0 on x86-64.
#pragma once

#include <run_model/image.h>

namespace run_model {

// The part `window` of `image` resized to width x height. The window must lie inside.
Image resize_cv2_linear(const Image& image, int width, int height, const Region& window);

}  // namespace run_model
