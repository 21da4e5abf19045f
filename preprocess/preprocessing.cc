#include <run_model/preprocessing.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include <run_model/error.h>
#include "base/enum_names.h"
#include "preprocess/image_operations.h"
#include "preprocess/resizers.h"
#include "preprocess/to_tensor.h"

namespace run_model {
namespace {

constexpr auto kColorOrders = enum_names<ColorOrder>(
    {{ColorOrder::kRgb, "RGB"}, {ColorOrder::kBgr, "BGR"}, {ColorOrder::kGray, "GRAY"}});

constexpr auto kLayouts = enum_names<Layout>({{Layout::kNchw, "NCHW"},
                                              {Layout::kNhwc, "NHWC"},
                                              {Layout::kChw, "CHW"},
                                              {Layout::kHwc, "HWC"}});

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
  const int crop = crops(preprocessing.fit) ? preprocessing.crop : 0;
  if (crop != 0 && (crop != width || crop != height)) {
    throw Error(ErrorKind::kMismatch, "a crop of " + std::to_string(crop) +
                                          " does not give the model's input of " +
                                          std::to_string(width) + "x" + std::to_string(height));
  }
  switch (preprocessing.fit) {
    case Fit::kCrop:
      return crop_geometry(image.width(), image.height(), preprocessing.resize, width, height,
                           preprocessing.crop_start);
    case Fit::kSquashCrop:
      return squash_crop_geometry(preprocessing.resize, width, height, preprocessing.crop_start);
    case Fit::kSquash:
    case Fit::kPad:  // what is resized has the input's proportions already
      return squash_geometry(width, height);
    case Fit::kLetterbox:
      return letterbox_geometry(image.width(), image.height(), width, height,
                                preprocessing.letterbox);
  }
  throw Error(ErrorKind::kInternal, "unknown fit");
}

// Nothing for the picture's edge.
std::optional<std::uint8_t> outside_value(const Preprocessing& preprocessing) {
  const bool pads = preprocessing.outside == Outside::kPad ||
                    (preprocessing.outside == Outside::kByFit &&
                     (preprocessing.fit == Fit::kLetterbox || preprocessing.fit == Fit::kPad));
  return pads ? std::optional(preprocessing.pad) : std::nullopt;
}

// The region as a picture of its own, with as many pixels as it has.
Image cut(const Image& image, const PictureRegion& region, std::optional<std::uint8_t> outside) {
  const auto whole = [](double number) { return number == std::floor(number); };
  if (region.angle == 0.0 && whole(region.x) && whole(region.y) && whole(region.width) &&
      whole(region.height) && region.x >= 0 && region.y >= 0 &&
      region.x + region.width <= image.width() && region.y + region.height <= image.height()) {
    return crop(image, {static_cast<int>(region.x), static_cast<int>(region.y),
                        static_cast<int>(region.width), static_cast<int>(region.height)});
  }
  const auto width = static_cast<int>(std::nearbyint(region.width));
  const auto height = static_cast<int>(std::nearbyint(region.height));
  check_image_size("the region", width, height);
  // A warp takes pixel i at i * scale: half a pixel further on, less the half that pixel 0 of the
  // picture begins before its middle, is the middle of it.
  const double turn = region.angle * std::numbers::pi / 180.0;
  const double x = region.width / width / 2, y = region.height / height / 2;
  PictureRegion middles = region;
  middles.x += x * std::cos(turn) - y * std::sin(turn) - 0.5;
  middles.y += x * std::sin(turn) + y * std::cos(turn) - 0.5;
  return warp_cv2_linear(image, middles, width, height, outside, {0, 0, width, height});
}

// What MediaPipe does: the fit changes the region, in fractions of a pixel, and one warp takes it.
Image warp(const Image& image, const Preprocessing& preprocessing, const InputSize& size,
           const PictureRegion* region, PreprocessReport& report) {
  const PictureRegion asked = region != nullptr
                                  ? *region
                                  : PictureRegion{0.0, 0.0, static_cast<double>(image.width()),
                                                  static_cast<double>(image.height())};
  PictureRegion seen = asked;
  if (preprocessing.fit == Fit::kCrop) {
    const double scale = preprocessing.resize / std::min(asked.width, asked.height);
    seen.width = size.width / scale;
    seen.height = size.height / scale;
    if (seen.width > asked.width || seen.height > asked.height) {
      throw Error(ErrorKind::kMismatch,
                  "the resized picture is smaller than the crop of " + std::to_string(size.width) +
                      "x" + std::to_string(size.height),
                  "resize the short side to at least the crop");
    }
  } else if (preprocessing.fit != Fit::kSquash) {
    // In single precision, as ImageToTensorCalculator's PadRoi has it.
    const auto width = static_cast<float>(asked.width), height = static_cast<float>(asked.height);
    const float aspect = static_cast<float>(size.height) / static_cast<float>(size.width);
    if (aspect > height / width) {
      seen.height = width * aspect;
    } else {
      seen.width = height / aspect;
    }
  }
  if (preprocessing.fit != Fit::kLetterbox || !preprocessing.letterbox.at_start) {
    seen.x -= (seen.width - asked.width) / 2;
    seen.y -= (seen.height - asked.height) / 2;
  }
  report.scale_x = size.width / seen.width;
  report.scale_y = size.height / seen.height;
  report.offset_x = -seen.x * report.scale_x;
  report.offset_y = -seen.y * report.scale_y;
  report.resized_width = static_cast<int>(std::nearbyint(asked.width * report.scale_x));
  report.resized_height = static_cast<int>(std::nearbyint(asked.height * report.scale_y));
  report.crop = {std::max(0, (report.resized_width - size.width) / 2),
                 std::max(0, (report.resized_height - size.height) / 2),
                 std::min(report.resized_width, size.width),
                 std::min(report.resized_height, size.height)};
  return warp_cv2_linear(image, seen, size.width, size.height, outside_value(preprocessing),
                         {0, 0, size.width, size.height});
}

// The picture resized, cropped and padded to the input's size.
Image fit(const Image& image, const Preprocessing& preprocessing, const InputSize& size,
          PreprocessReport& report) {
  const Geometry geometry = geometry_of(image, preprocessing, size.width, size.height);
  const bool pads_first = preprocessing.fit == Fit::kPad;
  const Padding padding =
      pads_first ? aspect_padding(image.width(), image.height(), size.width, size.height)
                 : Padding{0, 0, image.width(), image.height()};
  const Image padded = pads_first ? pad(image, padding.left, padding.top, padding.width,
                                        padding.height, preprocessing.pad)
                                  : Image();
  Image fitted = resize(pads_first ? padded : image, geometry.resized_width,
                        geometry.resized_height, preprocessing.resizer, geometry.window);
  if (fitted.width() != size.width || fitted.height() != size.height) {
    fitted = pad(fitted, geometry.pad_left, geometry.pad_top, size.width, size.height,
                 preprocessing.pad);
  }
  report.original_width = image.width();
  report.original_height = image.height();
  report.resized_width = geometry.resized_width;
  report.resized_height = geometry.resized_height;
  report.crop = geometry.window;
  report.scale_x = static_cast<double>(geometry.resized_width) / padding.width;
  report.scale_y = static_cast<double>(geometry.resized_height) / padding.height;
  report.offset_x = padding.left * report.scale_x + geometry.pad_left - geometry.window.x;
  report.offset_y = padding.top * report.scale_y + geometry.pad_top - geometry.window.y;
  return fitted;
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
  require(preprocessing.fit != Fit::kSquashCrop || preprocessing.resizer != Resizer::kCv2Warp,
          "the fit squash-crop has no meaning with the resizer cv2-warp", "give another resizer");
}

void preprocess_into(const Image& image, const Preprocessing& preprocessing, Layout layout,
                     const Tensor& input, PreprocessReport* report, const PictureRegion* region) {
  check_preprocessing(preprocessing);
  check_image_size("the image", image.width(), image.height());
  if (region != nullptr) check_region(*region, image.width(), image.height());
  const bool gray = preprocessing.color_order == ColorOrder::kGray;
  const InputSize size =
      picture_input_size(input.shape(), layout, channel_count(preprocessing.color_order));
  const Image gray_image = gray ? to_gray(image) : Image();
  const Image& colored = gray ? gray_image : image;
  PreprocessReport made;
  Image fitted;
  if (preprocessing.resizer == Resizer::kCv2Warp) {
    fitted = warp(colored, preprocessing, size, region, made);
  } else if (region != nullptr) {
    fitted = fit(cut(colored, *region, outside_value(preprocessing)), preprocessing, size, made);
    // From places in what was cut out to places in the picture.
    const double cut_x = made.original_width / region->width;
    const double cut_y = made.original_height / region->height;
    made.scale_x *= cut_x;
    made.scale_y *= cut_y;
    made.offset_x -= region->x * made.scale_x;
    made.offset_y -= region->y * made.scale_y;
  } else {
    fitted = fit(colored, preprocessing, size, made);
  }
  write_tensor(fitted, preprocessing, layout, input);
  if (report == nullptr) return;
  made.original_width = image.width();
  made.original_height = image.height();
  made.input_width = size.width;
  made.input_height = size.height;
  if (region != nullptr) made.region = *region;
  *report = made;
}

Tensor preprocess(const Image& image, const Preprocessing& preprocessing,
                  std::span<const std::int64_t> shape, DLDataType dtype, Layout layout,
                  PreprocessReport* report, const PictureRegion* region) {
  // The shape is judged before memory is taken for it.
  picture_input_size(shape, layout, channel_count(preprocessing.color_order));
  Tensor input = Tensor::empty({shape.begin(), shape.end()}, dtype);
  preprocess_into(image, preprocessing, layout, input, report, region);
  return input;
}

}  // namespace run_model
