#include "preprocess/resizers.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace run_model {
namespace {

constexpr int kWeightBits = 11;
constexpr int kWeightOne = 1 << kWeightBits;

// One target pixel along an axis: weight0 * source[first] + weight1 * source[second].
struct Pair {
  int first = 0;
  int second = 0;
  int weight0 = 0;
  int weight1 = 0;
};

// OpenCV rounds a float weight to the nearest integer, halves to even.
int fixed_weight(float weight) { return static_cast<int>(std::nearbyint(weight * kWeightOne)); }

std::vector<Pair> pairs(int source_size, int target_size, int begin, int count, bool clamp_weight) {
  // The division is done twice on purpose: OpenCV derives the scale from its inverse.
  const double scale = 1.0 / (static_cast<double>(target_size) / source_size);
  std::vector<Pair> result(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    auto position = static_cast<float>((begin + i + 0.5) * scale - 0.5);
    int first = static_cast<int>(std::floor(position));
    float fraction = position - static_cast<float>(first);
    if (clamp_weight && (first < 0 || first >= source_size - 1)) {
      first = std::clamp(first, 0, source_size - 1);
      fraction = 0.0F;
    }
    result[static_cast<std::size_t>(i)] = {std::clamp(first, 0, source_size - 1),
                                           std::clamp(first + 1, 0, source_size - 1),
                                           fixed_weight(1.0F - fraction), fixed_weight(fraction)};
  }
  return result;
}

void blend_row(const std::uint8_t* from, const std::vector<Pair>& columns, int* to) {
  for (const Pair& pair : columns) {
    const std::uint8_t* left = from + static_cast<std::ptrdiff_t>(pair.first) * kImageChannels;
    const std::uint8_t* right = from + static_cast<std::ptrdiff_t>(pair.second) * kImageChannels;
    for (int c = 0; c < kImageChannels; ++c) {
      *to++ = left[c] * pair.weight0 + right[c] * pair.weight1;
    }
  }
}

// The shifts are OpenCV's: they let its vector code work in 16 bits, and its scalar code follows.
std::uint8_t blend(int upper, int lower, const Pair& rows) {
  const int sum = (((upper >> 4) * rows.weight0) >> 16) + (((lower >> 4) * rows.weight1) >> 16);
  return static_cast<std::uint8_t>(std::clamp((sum + 2) >> 2, 0, 255));
}

Image halve(const Image& image, const Region& window) {
  constexpr std::ptrdiff_t kTwoPixels = 2 * kImageChannels;
  Image result(window.width, window.height);
  for (int y = 0; y < window.height; ++y) {
    const std::uint8_t* upper = image.row(2 * (window.y + y)) + kTwoPixels * window.x;
    const std::uint8_t* lower = upper + image.row_bytes();
    std::uint8_t* to = result.row(y);
    for (int x = 0; x < window.width; ++x) {
      for (int c = 0; c < kImageChannels; ++c) {
        const int sum = upper[c] + upper[c + kImageChannels] + lower[c] + lower[c + kImageChannels];
        *to++ = static_cast<std::uint8_t>((sum + 2) >> 2);
      }
      upper += kTwoPixels;
      lower += kTwoPixels;
    }
  }
  return result;
}

}  // namespace

Image resize_cv2_linear(const Image& image, int width, int height, const Region& window) {
  if (image.width() == std::int64_t{2} * width && image.height() == std::int64_t{2} * height) {
    return halve(image, window);
  }
  const std::vector<Pair> columns = pairs(image.width(), width, window.x, window.width, true);
  const std::vector<Pair> rows = pairs(image.height(), height, window.y, window.height, false);

  // Rows come in growing order, so the two blended rows of the last step are the only ones that the
  // next can share.
  Image result(window.width, window.height);
  std::vector<int> upper(result.row_bytes());
  std::vector<int> lower(result.row_bytes());
  int upper_row = -1;
  int lower_row = -1;
  for (int y = 0; y < window.height; ++y) {
    const Pair& pair = rows[static_cast<std::size_t>(y)];
    if (pair.first == lower_row) {
      std::swap(upper, lower);
      std::swap(upper_row, lower_row);
    }
    if (pair.first != upper_row) {
      blend_row(image.row(pair.first), columns, upper.data());
      upper_row = pair.first;
    }
    if (pair.second != lower_row) {
      blend_row(image.row(pair.second), columns, lower.data());
      lower_row = pair.second;
    }
    std::uint8_t* to = result.row(y);
    for (std::size_t x = 0; x < upper.size(); ++x) {
      to[x] = blend(upper[x], lower[x], pair);
    }
  }
  return result;
}

}  // namespace run_model
