#include "preprocess/to_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/float16.h"

namespace run_model {
namespace {

constexpr DLDataType kFloat32{kDLFloat, 32, 1};
constexpr DLDataType kFloat16{kDLFloat, 16, 1};
constexpr DLDataType kUint8{kDLUInt, 8, 1};
constexpr DLDataType kInt8{kDLInt, 8, 1};

template <typename T>
T from_float(float value) {
  if constexpr (std::is_same_v<T, float>) {
    return value;
  } else if constexpr (std::is_same_v<T, std::uint16_t>) {
    return float_to_half(value);
  } else {
    constexpr auto kLeast = static_cast<float>(std::numeric_limits<T>::min());
    constexpr auto kMost = static_cast<float>(std::numeric_limits<T>::max());
    return static_cast<T>(std::clamp(std::nearbyint(value), kLeast, kMost));
  }
}

template <typename T>
using Table = std::array<T, 256>;

// The result for every pixel value of the network's channel c.
template <typename T>
Table<T> make_table(const Preprocessing& preprocessing, std::size_t c) {
  Table<T> table;
  for (std::size_t pixel = 0; pixel < table.size(); ++pixel) {
    const float scaled = static_cast<float>(pixel) / preprocessing.divide_by;
    const float centred = scaled - preprocessing.mean[c];
    table[pixel] = from_float<T>(centred / preprocessing.std[c]);
  }
  return table;
}

// Fewer than these of the 256 values of a pixel, told apart as whole numbers, are no picture any
// more: what was stated is for the numbers that they stand for.
constexpr int kLeastLevels = 8;

template <typename T>
void check_levels(const Table<T>& table) {
  if constexpr (sizeof(T) == 1) {
    int levels = 1;
    for (std::size_t pixel = 1; pixel < table.size(); ++pixel) {
      levels += table[pixel] != table[pixel - 1] ? 1 : 0;
    }
    if (levels < kLeastLevels) {
      throw Error(ErrorKind::kMismatch,
                  "the preprocessing leaves " + std::to_string(levels) +
                      " of the 256 values of a pixel in an input of whole numbers",
                  "state mean and deviation for the numbers that the input stores, and not for "
                  "those that they stand for");
    }
  }
}

template <typename T>
void write(const Image& image, const Preprocessing& preprocessing, Layout layout,
           const Tensor& input) {
  const bool reversed = preprocessing.color_order == ColorOrder::kBgr;
  const auto channels = static_cast<std::size_t>(channel_count(preprocessing.color_order));
  const std::size_t pixels = image.byte_count() / kImageChannels;
  const bool planes = layout_name(layout).ends_with("CHW");
  T* const data = input.elements<T>().data();
  for (std::size_t c = 0; c < channels; ++c) {
    const Table<T> table = make_table<T>(preprocessing, c);
    check_levels(table);
    const std::uint8_t* from = image.data() + (reversed ? channels - 1 - c : c);
    T* to = planes ? data + c * pixels : data + c;
    const std::size_t step = planes ? 1 : channels;
    for (std::size_t i = 0; i < pixels; ++i, from += kImageChannels, to += step) {
      *to = table[*from];
    }
  }
}

}  // namespace

InputSize picture_input_size(std::span<const std::int64_t> shape, Layout layout, int channels) {
  const std::string_view axes = layout_name(layout);
  // A batch of one that is not there is one, too.
  const auto extent = [&](char axis) {
    const std::size_t at = axes.find(axis);
    return at == std::string_view::npos ? 1 : shape[at];
  };
  const bool fits = shape.size() == axes.size() && extent('N') == 1 && extent('C') == channels;
  const std::int64_t height = fits ? extent('H') : 0;
  const std::int64_t width = fits ? extent('W') : 0;
  if (height < 1 || width < 1 || height > kMaxImageSide || width > kMaxImageSide ||
      height * width > kMaxImagePixels) {
    const auto expected = [&](char axis) {
      if (axis == 'N') return std::string("1");
      if (axis == 'C') return std::to_string(channels);
      return std::string(axis == 'H' ? "height" : "width");
    };
    throw Error(ErrorKind::kMismatch,
                "an input of shape " + shape_name(shape) + " cannot take a picture: expected " +
                    "[" + comma_list(axes, expected) + "] (" + std::string(axes) + ")",
                "check the layout and colour order, or give the input as .npy");
  }
  return {static_cast<int>(width), static_cast<int>(height)};
}

void write_tensor(const Image& image, const Preprocessing& preprocessing, Layout layout,
                  const Tensor& input) {
  if (same_dtype(input.dtype(), kFloat32)) {
    write<float>(image, preprocessing, layout, input);
  } else if (same_dtype(input.dtype(), kFloat16)) {
    write<std::uint16_t>(image, preprocessing, layout, input);
  } else if (same_dtype(input.dtype(), kUint8)) {
    write<std::uint8_t>(image, preprocessing, layout, input);
  } else if (same_dtype(input.dtype(), kInt8)) {
    write<std::int8_t>(image, preprocessing, layout, input);
  } else {
    throw Error(ErrorKind::kMismatch,
                "an input of type " + dtype_name(input.dtype()) +
                    " cannot take a picture: expected float32, float16, uint8 or int8",
                "give the input as .npy");
  }
}

}  // namespace run_model
