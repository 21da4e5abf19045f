#include "preprocess/resizers.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace run_model {
namespace {

// 32 bits less 8 for the pixel and 2 because a bicubic sum may be negative or above 1.
constexpr int kPrecisionBits = 32 - 8 - 2;
constexpr std::int32_t kHalf = 1 << (kPrecisionBits - 1);

double bilinear_weight(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

// Keys' cubic convolution with a = -0.5. The order of operations decides the last bit.
double bicubic_weight(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) {
    return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  }
  if (x < 2.0) {
    return (((x - 5) * x + 8) * x - 4) * a;
  }
  return 0.0;
}

// The weights with which a run of source pixels makes one target pixel.
struct Taps {
  int first = 0;
  int count = 0;
  const std::int32_t* weights = nullptr;
};

// The taps of the target pixels [begin, begin + count) along one axis.
class Axis {
 public:
  Axis(int source_size, int target_size, PilFilter filter, int begin, int count) {
    const bool bilinear = filter == PilFilter::kBilinear;
    const auto weight = bilinear ? bilinear_weight : bicubic_weight;
    const double scale = static_cast<double>(source_size) / target_size;
    const double filter_scale = std::max(scale, 1.0);
    const double support = (bilinear ? 1.0 : 2.0) * filter_scale;
    const double inverse = 1.0 / filter_scale;
    const auto most = static_cast<std::size_t>(std::ceil(support)) * 2 + 1;
    weights_.resize(most * static_cast<std::size_t>(count));
    taps_.resize(static_cast<std::size_t>(count));
    std::vector<double> exact(most);
    std::int32_t* next = weights_.data();
    for (int i = 0; i < count; ++i) {
      const double center = (begin + i + 0.5) * scale;
      const int first = std::max(static_cast<int>(center - support + 0.5), 0);
      const int last = std::min(static_cast<int>(center + support + 0.5), source_size);
      double sum = 0.0;
      for (int x = first; x < last; ++x) {
        const double w = weight((x - center + 0.5) * inverse);
        exact[static_cast<std::size_t>(x - first)] = w;
        sum += w;
      }
      taps_[static_cast<std::size_t>(i)] = {first, last - first, next};
      for (int x = 0; x < last - first; ++x) {
        *next++ = to_fixed(sum != 0.0 ? exact[static_cast<std::size_t>(x)] / sum
                                      : exact[static_cast<std::size_t>(x)]);
      }
    }
  }

  const std::vector<Taps>& taps() const { return taps_; }

  // The source pixels that any tap reads, as [first, second).
  std::pair<int, int> range() const {
    return {taps_.front().first, taps_.back().first + taps_.back().count};
  }

 private:
  static std::int32_t to_fixed(double weight) {
    const double scaled = weight * (1 << kPrecisionBits);
    return static_cast<std::int32_t>(weight < 0 ? -0.5 + scaled : 0.5 + scaled);
  }

  std::vector<std::int32_t> weights_;
  std::vector<Taps> taps_;
};

std::uint8_t to_byte(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> kPrecisionBits, 0, 255));
}

// `from` is the source's column `origin`.
void resample_row(const std::uint8_t* from, int origin, const std::vector<Taps>& taps,
                  std::uint8_t* to) {
  for (const Taps& tap : taps) {
    const std::uint8_t* pixel = from + std::ptrdiff_t{tap.first - origin} * kImageChannels;
    std::int32_t red = kHalf;
    std::int32_t green = kHalf;
    std::int32_t blue = kHalf;
    for (int i = 0; i < tap.count; ++i, pixel += kImageChannels) {
      const std::int32_t weight = tap.weights[i];
      red += pixel[0] * weight;
      green += pixel[1] * weight;
      blue += pixel[2] * weight;
    }
    to[0] = to_byte(red);
    to[1] = to_byte(green);
    to[2] = to_byte(blue);
    to += kImageChannels;
  }
}

// One target row out of the rows that `tap` names, the first of them at `from`, `stride` bytes
// apart.
void resample_column(const std::uint8_t* from, std::size_t stride, const Taps& tap,
                     std::vector<std::int32_t>& sums, std::uint8_t* to) {
  std::fill(sums.begin(), sums.end(), kHalf);
  for (int i = 0; i < tap.count; ++i, from += stride) {
    const std::int32_t weight = tap.weights[i];
    for (std::size_t x = 0; x < sums.size(); ++x) {
      sums[x] += from[x] * weight;
    }
  }
  std::transform(sums.begin(), sums.end(), to, to_byte);
}

// The horizontal pass over `count` rows of `image` from `first` on. The image begins with the
// source's column `origin`.
Image resample_rows(const Image& image, int origin, const Axis& columns, int first, int count) {
  Image result(static_cast<int>(columns.taps().size()), count);
  for (int y = 0; y < count; ++y) {
    resample_row(image.row(first + y), origin, columns.taps(), result.row(y));
  }
  return result;
}

// The vertical pass over `count` columns of `image` from `first` on. The image begins with the
// source's row `origin`.
Image resample_columns(const Image& image, int origin, const Axis& rows, int first, int count) {
  Image result(count, static_cast<int>(rows.taps().size()));
  std::vector<std::int32_t> sums(result.row_bytes());
  for (int y = 0; y < result.height(); ++y) {
    const Taps& tap = rows.taps()[static_cast<std::size_t>(y)];
    resample_column(image.row(tap.first - origin) + std::ptrdiff_t{first} * kImageChannels,
                    image.row_bytes(), tap, sums, result.row(y));
  }
  return result;
}

// Found by comparing with both orders on 2,500 pairs of sizes: Pillow 13 begins with the pass along
// the height where that loses more than twice as many pixels as the width does.
bool columns_first(const Image& image, int width, int height, PilRelease release) {
  const std::int64_t lost = image.height() - height;
  return release == PilRelease::k13 && lost > 0 && lost > 2 * (std::int64_t{image.width()} - width);
}

}  // namespace

Image resize_pil(const Image& image, int width, int height, PilFilter filter, PilRelease release,
                 const Region& window) {
  const Axis columns(image.width(), width, filter, window.x, window.width);
  const Axis rows(image.height(), height, filter, window.y, window.height);
  // A pass is left out, as in Pillow, where the size does not change along its axis.
  if (height == image.height()) {
    return resample_rows(image, 0, columns, window.y, window.height);
  }
  if (width == image.width()) {
    return resample_columns(image, 0, rows, window.x, window.width);
  }
  if (columns_first(image, width, height, release)) {
    const auto [first, last] = columns.range();
    const Image flattened = resample_columns(image, 0, rows, first, last - first);
    return resample_rows(flattened, first, columns, 0, window.height);
  }
  const auto [first, last] = rows.range();
  const Image narrowed = resample_rows(image, 0, columns, first, last - first);
  return resample_columns(narrowed, first, rows, 0, window.width);
}

}  // namespace run_model
