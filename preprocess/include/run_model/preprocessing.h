// How a picture becomes the input of a network: the settings that metadata.json and the program's
// flags give, and the one function that applies them.
#pragma once

#include <dlpack/dlpack.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <run_model/geometry.h>
#include <run_model/image.h>
#include <run_model/resize.h>
#include <run_model/tensor.h>

namespace run_model {

// The order in which the network sees its channels. kGray is one channel: the picture is made grey
// before it is resized, by Pillow's convert("L").
enum class ColorOrder { kRgb, kBgr, kGray };

constexpr int channel_count(ColorOrder order) { return order == ColorOrder::kGray ? 1 : 3; }

// "RGB", "BGR" or "GRAY".
std::string_view color_order_name(ColorOrder order);

// The inverse of color_order_name. Throws Error(kUsage) when `name` is none of the names.
ColorOrder parse_color_order(std::string_view name);

// The axes of a picture's tensor: batch (of one), channels, height and width.
enum class Layout { kNchw, kNhwc, kChw, kHwc };

// A letter for each axis: "NCHW", "NHWC", "CHW" or "HWC".
std::string_view layout_name(Layout layout);

// The inverse of layout_name. Throws Error(kUsage) when `name` is none of the names.
Layout parse_layout(std::string_view name);

// What lies outside the picture, where the fit or a region reaches beyond it.
enum class Outside {
  kByFit,  // `pad` for letterbox and pad, else the picture's edge
  kPad,
  kEdge,
};

struct Preprocessing {
  Resizer resizer = Resizer::kPilBilinear;
  Fit fit = Fit::kCrop;
  int resize = 256;  // fit crop: length of the short side; squash-crop: of both
  int crop = 0;      // of both: side that the network's input must have; 0: any
  CropStart crop_start = CropStart::kRounded;
  std::uint8_t pad = 114;             // fit letterbox and pad: all channels of the padding
  LetterboxRule letterbox{};          // fit letterbox
  Outside outside = Outside::kByFit;  // kEdge has a meaning with the resizer cv2-warp only
  ColorOrder color_order = ColorOrder::kRgb;
  // x = (float32(pixel) / divide_by - mean[c]) / std[c], c in the network's channel order, every
  // step rounded to float32. Of kGray only the first of each counts.
  float divide_by = 1.0F;
  std::array<float, 3> mean{0.0F, 0.0F, 0.0F};
  std::array<float, 3> std{1.0F, 1.0F, 1.0F};

  friend bool operator==(const Preprocessing&, const Preprocessing&) = default;
};

// ImageNet's mean and standard deviation in `order`, for pixels divided by 255. Those of kGray are
// the means of the three.
std::array<float, 3> imagenet_mean(ColorOrder order);
std::array<float, 3> imagenet_std(ColorOrder order);

// Throws Error(kUsage) naming the setting when a number is not finite, std or divide_by is 0,
// the length to resize to is not in 1..kMaxImageSide, or resizer and fit do not go together.
void check_preprocessing(const Preprocessing& preprocessing);

// The sides of a picture on its way to the network.
struct PreprocessReport {
  int original_width = 0;
  int original_height = 0;
  int resized_width = 0;
  int resized_height = 0;
  Region crop;  // within the resized picture
  int input_width = 0;
  int input_height = 0;
  // The way there and back, in pixels whose corners are whole numbers:
  // place in the input = place in the picture * scale + offset,
  // where a place in the picture is first turned back by the angle of `region` about its centre.
  double scale_x = 1.0, scale_y = 1.0;
  double offset_x = 0.0, offset_y = 0.0;
  // What of the picture the network was to see; nothing: all of it.
  std::optional<PictureRegion> region{};
};

// The side to which TVM-Prep and torchvision resize before a crop of `side`: 256 for 224.
int usual_resize(int side);

// A tensor of `shape` (by `layout`, N = 1, C = 3, or 1 for kGray) and `dtype` (float32, float16,
// uint8 or int8; integers are rounded half to even and clamped). Throws Error(kMismatch) for
// another shape or type, a crop of another size or one that does not fit, and where rounding leaves
// fewer than 8 of the 256 values of a pixel, Error(kImage) for an image without pixels, and as
// check_preprocessing and check_region do. `report`, where given, is filled in. Of `region` what is
// said of the picture holds: it is resized, cropped or padded in the picture's place.
Tensor preprocess(const Image& image, const Preprocessing& preprocessing,
                  std::span<const std::int64_t> shape, DLDataType dtype, Layout layout,
                  PreprocessReport* report = nullptr, const PictureRegion* region = nullptr);

// The same into the memory of `input`, whose shape and type count.
void preprocess_into(const Image& image, const Preprocessing& preprocessing, Layout layout,
                     const Tensor& input, PreprocessReport* report = nullptr,
                     const PictureRegion* region = nullptr);

}  // namespace run_model
