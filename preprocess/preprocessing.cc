#include <run_model/preprocessing.h>

#include <algorithm>
#include <cmath>
#include <string>

#include <run_model/error.h>
#include "base/enum_names.h"
#include "preprocess/image_operations.h"
#include "preprocess/to_tensor.h"

namespace run_model {
namespace {

constexpr auto kColorOrders = enum_names<ColorOrder>(
    {{ColorOrder::kRgb, "RGB"}, {ColorOrder::kBgr, "BGR"}, {ColorOrder::kGray, "GRAY"}});

constexpr auto kLayouts = enum_names<Layout>({{Layout::kNchw, "NCHW"}, {Layout::kNhwc, "NHWC"}});

// Red, green, blue → the order of the network.
std::array<float, 3> in_order(ColorOrder order, std::array<float, 3> rgb) {
  switch (order) {
    case ColorOrder::kRgb:
      return rgb;
    case ColorOrder::kBgr:
      return {rgb[2], rgb[1], rgb[0]};
    case ColorOrder::kGray: {
      const float middle = (rgb[0] + rgb[1] + rgb[2]) / 3.0F;
      return {middle, middle, middle};
    }
  }
  return rgb;
}

Geometry geometry_of(const Image& image, const Preprocessing& preprocessing, int width,
                     int height) {
  switch (preprocessing.fit) {
    case Fit::kCrop:
      if (preprocessing.crop != 0 &&
          (preprocessing.crop != width || preprocessing.crop != height)) {
        throw Error(ErrorKind::kMismatch, "a crop of " + std::to_string(preprocessing.crop) +
                                              " does not give the model's input of " +
                                              std::to_string(width) + "x" + std::to_string(height));
      }
      return crop_geometry(image.width(), image.height(), preprocessing.resize, width, height);
    case Fit::kSquash:
    case Fit::kPad:  // what is resized has the input's proportions already
      return squash_geometry(width, height);
    case Fit::kLetterbox:
      return letterbox_geometry(image.width(), image.height(), width, height);
  }
  throw Error(ErrorKind::kInternal, "unknown fit");
}

}  // namespace

std::string_view color_order_name(ColorOrder order) { return kColorOrders.name(order); }

ColorOrder parse_color_order(std::string_view name) {
  return kColorOrders.parse(name, "colour order");
}

std::string_view layout_name(Layout layout) { return kLayouts.name(layout); }

Layout parse_layout(std::string_view name) { return kLayouts.parse(name, "layout"); }

std::array<float, 3> imagenet_mean(ColorOrder order) {
  return in_order(order, {0.485F, 0.456F, 0.406F});
}

std::array<float, 3> imagenet_std(ColorOrder order) {
  return in_order(order, {0.229F, 0.224F, 0.225F});
}

int usual_resize(int side) { return static_cast<int>(std::int64_t{side} * 8 / 7); }

void check_preprocessing(const Preprocessing& preprocessing) {
  const auto require = [](bool good, const char* sentence, const char* hint) {
    if (!good) {
      throw Error(ErrorKind::kUsage, sentence, hint);
    }
  };
  const auto finite = [](float value) { return std::isfinite(value); };
  const auto divisor = [](float value) { return std::isfinite(value) && value != 0.0F; };
  require(std::all_of(preprocessing.mean.begin(), preprocessing.mean.end(), finite),
          "a value of mean is not a finite number", "give three numbers such as 104 117 123");
  require(std::all_of(preprocessing.std.begin(), preprocessing.std.end(), divisor),
          "a value of std is 0 or not a finite number",
          "pixels are divided by it; give 1 for none");
  require(divisor(preprocessing.divide_by), "divide_by is 0 or not a finite number",
          "give 1 for pixels from 0 to 255 or 255 for 0 to 1");
  require(preprocessing.resize >= 1 && preprocessing.resize <= kMaxImageSide,
          "the length to resize the short side to is out of range",
          "give a length from 1 to 65535");
}

void preprocess_into(const Image& image, const Preprocessing& preprocessing, Layout layout,
                     const Tensor& input, PreprocessReport* report) {
  check_preprocessing(preprocessing);
  const bool gray = preprocessing.color_order == ColorOrder::kGray;
  const InputSize size = picture_input_size(input.shape(), layout, gray ? 1 : 3);
  const Geometry geometry = geometry_of(image, preprocessing, size.width, size.height);

  const Image gray_image = gray ? to_gray(image) : Image();
  const Image& colored = gray ? gray_image : image;
  const bool pads_first = preprocessing.fit == Fit::kPad;
  const Padding padding =
      pads_first ? aspect_padding(image.width(), image.height(), size.width, size.height)
                 : Padding{0, 0, image.width(), image.height()};
  const Image padded = pads_first ? pad(colored, padding.left, padding.top, padding.width,
                                        padding.height, preprocessing.pad)
                                  : Image();
  Image fitted = resize(pads_first ? padded : colored, geometry.resized_width,
                        geometry.resized_height, preprocessing.resizer, geometry.window);
  if (fitted.width() != size.width || fitted.height() != size.height) {
    fitted = pad(fitted, geometry.pad_left, geometry.pad_top, size.width, size.height,
                 preprocessing.pad);
  }
  write_tensor(fitted, preprocessing, layout, input);
  if (report != nullptr) {
    const double scale_x = static_cast<double>(geometry.resized_width) / padding.width;
    const double scale_y = static_cast<double>(geometry.resized_height) / padding.height;
    *report = {image.width(),
               image.height(),
               geometry.resized_width,
               geometry.resized_height,
               geometry.window,
               size.width,
               size.height,
               scale_x,
               scale_y,
               padding.left * scale_x + geometry.pad_left - geometry.window.x,
               padding.top * scale_y + geometry.pad_top - geometry.window.y};
  }
}

Tensor preprocess(const Image& image, const Preprocessing& preprocessing,
                  std::span<const std::int64_t> shape, DLDataType dtype, Layout layout,
                  PreprocessReport* report) {
  // The shape is judged before memory is taken for it.
  picture_input_size(shape, layout, preprocessing.color_order == ColorOrder::kGray ? 1 : 3);
  Tensor input = Tensor::empty({shape.begin(), shape.end()}, dtype);
  preprocess_into(image, preprocessing, layout, input, report);
  return input;
}

}  // namespace run_model
