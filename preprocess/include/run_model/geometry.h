// Where the network's input lies in the resized picture.
#pragma once

#include <string_view>

#include <run_model/image.h>

namespace run_model {

// How a picture of any shape becomes the network's height x width.
enum class Fit {
  kCrop,        // scale the short side to a given length, take the middle
  kSquash,      // scale both sides to the network's, whatever that does to proportions
  kLetterbox,   // scale so that the whole picture fits, fill the rest with one value
  kPad,         // fill it up to the network's proportions, then scale both sides
  kSquashCrop,  // scale both sides to a given length, take the middle
};

// Whether the fit takes the middle of a picture resized to a given length.
constexpr bool crops(Fit fit) { return fit == Fit::kCrop || fit == Fit::kSquashCrop; }

// "crop", "squash", "letterbox", "pad" or "squash-crop".
std::string_view fit_name(Fit fit);

// The inverse of fit_name. Throws Error(kUsage) listing the names when `name` is none of them.
Fit parse_fit(std::string_view name);

// A rectangle of the picture that a network is to see in place of the whole: given upright, and
// turned about its centre. It may reach beyond the picture.
struct PictureRegion {
  double x = 0.0, y = 0.0, width = 0.0, height = 0.0;  // pixels, before it is turned
  double angle = 0.0;                                  // degrees, clockwise

  friend bool operator==(const PictureRegion&, const PictureRegion&) = default;
};

// Whether a picture of width x height may show part of the region.
bool can_be_seen(const PictureRegion& region, int width, int height);

// Throws Error(kUsage) unless all numbers are finite, the sides are 1 to kMaxImageSide, and
// the region can be seen.
void check_region(const PictureRegion& region, int width, int height);

struct Geometry {
  int resized_width = 0;
  int resized_height = 0;
  Region window;     // the part of the resized picture that is used
  int pad_left = 0;  // columns and rows of padding before it; the rest of the input lies behind it
  int pad_top = 0;
};

// Where a crop of an odd number of pixels less than the picture begins.
enum class CropStart {
  kRounded,  // torchvision's CenterCrop: int(round((size - crop) / 2.0)), halves to even
  kDown,     // transformers' image processors: (size - crop) // 2
};

// torchvision's Resize(short_side) and CenterCrop((crop_height, crop_width)): the long side is
// int(short_side * long / short). Throws Error(kMismatch) when the resized picture is smaller than
// the crop, or too long to index.
Geometry crop_geometry(int width, int height, int short_side, int crop_width, int crop_height,
                       CropStart start = CropStart::kRounded);

Geometry squash_geometry(int target_width, int target_height);

// torchvision's Resize((side, side)) and the same crop. Throws Error(kMismatch) when that is
// larger.
Geometry squash_crop_geometry(int side, int crop_width, int crop_height,
                              CropStart start = CropStart::kRounded);

// How a letterbox leaves its padding, and gets its sides to whole pixels.
struct LetterboxRule {
  bool at_start = false;    // all padding behind the picture, as YOLOX has it
  bool round_down = false;  // sides are not rounded but cut off, as YOLOX has it

  friend bool operator==(const LetterboxRule&, const LetterboxRule&) = default;
};

// The rule of YOLO's detectors: ratio = min(target / size) over both sides, each side
// round(size * ratio) with halves to even, and the odd pixel of padding behind the picture.
Geometry letterbox_geometry(int width, int height, int target_width, int target_height,
                            const LetterboxRule& rule = {});

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
