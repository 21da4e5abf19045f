// Where the network's input lies in the resized picture.
#pragma once

#include <string_view>

#include <run_model/image.h>

namespace run_model {

// How a picture of any shape becomes the network's height x width.
enum class Fit {
  kCrop,       // scale the short side to a given length, take the middle
  kSquash,     // scale both sides to the network's, whatever that does to proportions
  kLetterbox,  // scale so that the whole picture fits, fill the rest with one value
  kPad,        // fill it up to the network's proportions, then scale both sides
};

// "crop", "squash", "letterbox" or "pad".
std::string_view fit_name(Fit fit);

// The inverse of fit_name. Throws Error(kUsage) listing the names when `name` is none of them.
Fit parse_fit(std::string_view name);

struct Geometry {
  int resized_width = 0;
  int resized_height = 0;
  Region window;     // the part of the resized picture that is used
  int pad_left = 0;  // columns and rows of padding before it; the rest of the input lies behind it
  int pad_top = 0;
};

// torchvision's Resize(short_side) and CenterCrop((crop_height, crop_width)): the long side is
// int(short_side * long / short), the offset int(round((size - crop) / 2.0)) with halves to even.
// Throws Error(kMismatch) when the resized picture is smaller than the crop, or too long to index.
Geometry crop_geometry(int width, int height, int short_side, int crop_width, int crop_height);

Geometry squash_geometry(int target_width, int target_height);

// The rule of YOLO's detectors: ratio = min(target / size) over both sides, each side
// round(size * ratio) with halves to even, and the odd pixel of padding behind the picture.
Geometry letterbox_geometry(int width, int height, int target_width, int target_height);

// The picture within a larger one.
struct Padding {
  int left = 0, top = 0;
  int width = 0, height = 0;  // of the larger one
};

// The rule of YOEO's pipeline, which is that of imgaug's PadToAspectRatio in the centre: of the
// pixels that are missing to the target's proportions, half, rounded down, come before the picture,
// and half, rounded up, behind it.
Padding aspect_padding(int width, int height, int target_width, int target_height);

}  // namespace run_model
