#include "labels/class_scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "runtime/error.h"

namespace run_model {
namespace {

// Large enough for the rounding of a thousand float16 values, too small for anything but a softmax.
constexpr double kSumTolerance = 1e-3;

// IEEE 754 binary16.
double half_to_double(std::uint16_t bits) {
  const int exponent = bits >> 10 & 0x1F;
  const int fraction = bits & 0x3FF;
  double value = 0;
  if (exponent == 0x1F) {
    value = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(fraction, -24);
  } else {
    value = std::ldexp(fraction + 0x400, exponent - 25);
  }
  return (bits & 0x8000) != 0 ? -value : value;
}

template <typename T>
std::vector<double> convert(const Tensor& tensor, const Quantization& quantization) {
  const std::span<T> values = tensor.elements<T>();
  std::vector<double> scores(values.size());
  std::transform(values.begin(), values.end(), scores.begin(), [&](T value) {
    if constexpr (std::is_integral_v<T>) {
      return quantization.scale *
             (static_cast<double>(value) - static_cast<double>(quantization.zero_point));
    } else {
      return static_cast<double>(value);
    }
  });
  return scores;
}

std::vector<double> to_doubles(const Tensor& tensor, const Quantization& quantization) {
  const DLDataType type = tensor.dtype();
  const int key = type.lanes == 1 ? type.code << 8 | type.bits : -1;
  switch (key) {
    case kDLFloat << 8 | 16: {
      const std::span<std::uint16_t> halves = tensor.elements<std::uint16_t>();
      std::vector<double> scores(halves.size());
      std::transform(halves.begin(), halves.end(), scores.begin(), half_to_double);
      return scores;
    }
    case kDLFloat << 8 | 32:
      return convert<float>(tensor, quantization);
    case kDLFloat << 8 | 64:
      return convert<double>(tensor, quantization);
    case kDLInt << 8 | 8:
      return convert<std::int8_t>(tensor, quantization);
    case kDLInt << 8 | 16:
      return convert<std::int16_t>(tensor, quantization);
    case kDLInt << 8 | 32:
      return convert<std::int32_t>(tensor, quantization);
    case kDLInt << 8 | 64:
      return convert<std::int64_t>(tensor, quantization);
    case kDLUInt << 8 | 8:
      return convert<std::uint8_t>(tensor, quantization);
    case kDLUInt << 8 | 16:
      return convert<std::uint16_t>(tensor, quantization);
    case kDLUInt << 8 | 32:
      return convert<std::uint32_t>(tensor, quantization);
    case kDLUInt << 8 | 64:
      return convert<std::uint64_t>(tensor, quantization);
    default:
      throw Error(ErrorCode::kMismatch,
                  "the model's output is of " + dtype_name(type) + ", which are no class scores",
                  "save it with --outputs instead");
  }
}

}  // namespace

std::size_t class_count(const std::vector<std::int64_t>& shape) {
  std::int64_t classes = 1;
  for (const std::int64_t dimension : shape) {
    if (dimension == 1) continue;
    if (classes != 1 || dimension == 0) {
      throw Error(ErrorCode::kMismatch,
                  "the model's output has the shape " + shape_name(shape) +
                      ", but the scores of one picture were expected, such as [1, N]",
                  "compile the model for a batch of one, or save its outputs with --outputs");
    }
    classes = dimension;
  }
  return static_cast<std::size_t>(classes);
}

std::vector<double> class_scores(const Tensor& output, const Quantization& quantization) {
  class_count(output.shape());
  std::vector<double> scores = to_doubles(output, quantization);
  const auto bad = std::find_if_not(scores.begin(), scores.end(),
                                    [](double score) { return std::isfinite(score); });
  if (bad != scores.end()) {
    const auto count = std::count_if(scores.begin(), scores.end(),
                                     [](double score) { return !std::isfinite(score); });
    throw Error(ErrorCode::kModel,
                "the model gave " + std::string(std::isnan(*bad) ? "NaN" : "infinity") +
                    " for class " + std::to_string(bad - scores.begin()) + " (" +
                    std::to_string(count) + " of " + std::to_string(scores.size()) +
                    " scores are not finite)",
                "check that the preprocessing and the parameters are the model's own");
  }
  return scores;
}

bool is_distribution(std::span<const double> scores) {
  const bool in_range = std::all_of(scores.begin(), scores.end(),
                                    [](double score) { return score >= 0.0 && score <= 1.0; });
  return in_range &&
         std::abs(std::accumulate(scores.begin(), scores.end(), 0.0) - 1.0) <= kSumTolerance;
}

}  // namespace run_model
