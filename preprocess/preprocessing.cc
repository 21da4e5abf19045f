#include <run_model/preprocessing.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "preprocess/to_tensor.h"

namespace run_model {
namespace {

constexpr std::array<std::pair<ColorOrder, std::string_view>, 3> kColorOrders = {{
    {ColorOrder::kRgb, "RGB"},
    {ColorOrder::kBgr, "BGR"},
    {ColorOrder::kGray, "GRAY"},
}};

constexpr std::array<std::pair<Layout, std::string_view>, 2> kLayouts = {{
    {Layout::kNchw, "NCHW"},
    {Layout::kNhwc, "NHWC"},
}};

template <typename T, std::size_t N>
std::string_view name_of(const std::array<std::pair<T, std::string_view>, N>& table, T value) {
  for (const auto& [known, name] : table) {
    if (known == value) {
      return name;
    }
  }
  return "unknown";
}

template <typename T, std::size_t N>
T parse(const std::array<std::pair<T, std::string_view>, N>& table, std::string_view name,
        const char* what) {
  std::string names;
  for (const auto& [value, known] : table) {
    if (known == name) {
      return value;
    }
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  throw Error(ErrorKind::kUsage, "unknown " + std::string(what) + " '" + std::string(name) + "'",
              "it is one of " + names);
}

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

// Pillow's convert("L"): ITU-R 601 luma in 16-bit fixed point, rounded.
Image to_gray(const Image& image) {
  Image gray(image.width(), image.height());
  const std::uint8_t* from = image.data();
  const std::uint8_t* const end = from + image.byte_count();
  for (std::uint8_t* to = gray.data(); from != end; from += kImageChannels) {
    const int luma = (from[0] * 19595 + from[1] * 38470 + from[2] * 7471 + 0x8000) >> 16;
    to = std::fill_n(to, kImageChannels, static_cast<std::uint8_t>(luma));
  }
  return gray;
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
      return squash_geometry(width, height);
    case Fit::kLetterbox:
      return letterbox_geometry(image.width(), image.height(), width, height);
  }
  throw Error(ErrorKind::kInternal, "unknown fit");
}

Image pad(const Image& image, const Geometry& geometry, int width, int height, std::uint8_t value) {
  Image padded(width, height);
  std::memset(padded.data(), value, padded.byte_count());
  for (int y = 0; y < image.height(); ++y) {
    std::memcpy(padded.row(geometry.pad_top + y) + geometry.pad_left * kImageChannels, image.row(y),
                image.row_bytes());
  }
  return padded;
}

}  // namespace

std::string_view color_order_name(ColorOrder order) { return name_of(kColorOrders, order); }

ColorOrder parse_color_order(std::string_view name) {
  return parse(kColorOrders, name, "colour order");
}

std::string_view layout_name(Layout layout) { return name_of(kLayouts, layout); }

Layout parse_layout(std::string_view name) { return parse(kLayouts, name, "layout"); }

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
  Image fitted = resize(gray ? gray_image : image, geometry.resized_width, geometry.resized_height,
                        preprocessing.resizer, geometry.window);
  if (fitted.width() != size.width || fitted.height() != size.height) {
    fitted = pad(fitted, geometry, size.width, size.height, preprocessing.pad);
  }
  write_tensor(fitted, preprocessing, layout, input);
  if (report != nullptr) {
    *report = {image.width(),
               image.height(),
               geometry.resized_width,
               geometry.resized_height,
               geometry.window,
               size.width,
               size.height};
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
