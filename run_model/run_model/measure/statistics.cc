#include "run_model/run_model/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace run_model {
namespace {

// The greatest rank r (from 0) so that fewer than r + 1 of `count` values below the true median has
// a probability of at most 2.5 %; the interval then reaches from the r-th value to its mirror
// image.
std::optional<std::size_t> interval_rank(std::size_t count) {
  const double n = static_cast<double>(count);
  // log C(n, 0) + n log 1/2, then from one coefficient to the next.
  double log_probability = -n * std::log(2.0);
  double below = 0.0;
  std::optional<std::size_t> rank;
  for (std::size_t k = 0; k < count / 2; ++k) {
    below += std::exp(log_probability);
    if (below > 0.025) break;
    rank = k;
    log_probability += std::log((n - static_cast<double>(k)) / (static_cast<double>(k) + 1));
  }
  return rank;
}

}  // namespace

std::optional<double> Statistics::relative_interval() const {
  if (!interval || !(median > 0)) return std::nullopt;
  return (interval->high - interval->low) / median;
}

double quantile(std::span<const double> sorted, double q) {
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double share = position - static_cast<double>(below);
  const double step = sorted[above] - sorted[below];
  // From the nearer end, so that the result never leaves the pair by rounding.
  return share < 0.5 ? sorted[below] + step * share : sorted[above] - step * (1 - share);
}

std::optional<MedianInterval> median_interval(std::span<const double> sorted) {
  const std::optional<std::size_t> rank = interval_rank(sorted.size());
  if (!rank) return std::nullopt;
  return MedianInterval{sorted[*rank], sorted[sorted.size() - 1 - *rank]};
}

Statistics describe(std::span<const double> values) {
  Statistics result;
  if (values.empty()) return result;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const auto count = static_cast<double>(sorted.size());
  result.count = sorted.size();
  result.min = sorted.front();
  result.median = quantile(sorted, 0.5);
  result.mean = std::accumulate(sorted.begin(), sorted.end(), 0.0) / count;
  result.p90 = quantile(sorted, 0.9);
  result.p95 = quantile(sorted, 0.95);
  result.p99 = quantile(sorted, 0.99);
  result.max = sorted.back();
  double squares = 0.0;
  for (const double value : sorted) squares += (value - result.mean) * (value - result.mean);
  if (sorted.size() > 1) result.std = std::sqrt(squares / (count - 1));
  result.interval = median_interval(sorted);
  return result;
}

}  // namespace run_model
