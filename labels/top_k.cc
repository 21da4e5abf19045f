#include <run_model/top_k.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include <run_model/class_scores.h>

namespace run_model {

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
