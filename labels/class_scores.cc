#include <run_model/class_scores.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include <run_model/error.h>
#include <run_model/tensor.h>
#include <run_model/top_k.h>

namespace run_model {
namespace {

// Large enough for the rounding of a thousand float16 values, too small for anything but a softmax.
constexpr double kSumTolerance = 1e-3;

bool is_integer(DLDataType type) {
  return (type.code == kDLInt || type.code == kDLUInt) && type.bits > 1;
}

}  // namespace

std::size_t class_count(const std::vector<std::int64_t>& shape) {
  std::int64_t classes = 1;
  for (const std::int64_t dimension : shape) {
    if (dimension == 1) continue;
    if (classes != 1 || dimension == 0) {
      throw Error(ErrorKind::kMismatch,
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
  if (!is_integer(output.dtype()) && output.dtype().code != kDLFloat) {
    throw Error(
        ErrorKind::kMismatch,
        "the model's output is of " + dtype_name(output.dtype()) + ", which are no class scores",
        "save it with --outputs instead");
  }
  std::vector<double> scores = to_doubles(output);
  if (is_integer(output.dtype())) {
    for (double& score : scores) {
      score = quantization.scale * (score - static_cast<double>(quantization.zero_point));
    }
  }
  const auto bad = std::find_if_not(scores.begin(), scores.end(),
                                    [](double score) { return std::isfinite(score); });
  if (bad != scores.end()) {
    const auto count = std::count_if(scores.begin(), scores.end(),
                                     [](double score) { return !std::isfinite(score); });
    throw Error(ErrorKind::kModel,
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

std::vector<double> softmax(std::span<const double> scores) {
  std::vector<double> result(scores.size());
  if (scores.empty()) return result;
  const double largest = *std::max_element(scores.begin(), scores.end());
  std::transform(scores.begin(), scores.end(), result.begin(),
                 [&](double score) { return std::exp(score - largest); });
  // At least 1, the largest score's own share.
  const double sum = std::accumulate(result.begin(), result.end(), 0.0);
  for (double& value : result) value /= sum;
  return result;
}

std::vector<Prediction> top_k(std::span<const double> scores, std::size_t count) {
  const std::vector<double> probabilities =
      is_distribution(scores) ? std::vector<double>(scores.begin(), scores.end()) : softmax(scores);
  // By score: far behind the best class, different scores have the same probability, 0.
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  count = std::min(count, scores.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
                    });
  std::vector<Prediction> best;
  for (std::size_t i = 0; i < count; ++i) best.push_back({order[i], probabilities[order[i]]});
  return best;
}

}  // namespace run_model
