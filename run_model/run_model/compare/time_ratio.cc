#include "run_model/run_model/compare/time_ratio.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "run_model/run_model/measure/statistics.h"

namespace run_model {
namespace {

constexpr std::size_t kMostSamples = 1000;
// The normal distribution's quantile of 97.5 %.
constexpr double kQuantile = 1.959964;
// Beyond this, neighbours are practically the same sample.
constexpr double kMostCorrelation = 0.98;

std::vector<double> evenly_spaced(std::span<const double> samples) {
  const std::size_t step = (samples.size() + kMostSamples - 1) / kMostSamples;
  std::vector<double> chosen;
  for (std::size_t i = 0; i < samples.size(); i += step) chosen.push_back(samples[i]);
  return chosen;
}

// The correlation of each sample's rank with the next one's; 0 where all are equal.
double neighbour_correlation(const std::vector<double>& samples) {
  std::vector<double> sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  std::vector<double> ranks;
  for (const double sample : samples) {
    const auto [first, last] = std::equal_range(sorted.begin(), sorted.end(), sample);
    // Equal samples share the mean of their ranks; from the middle of all ranks.
    ranks.push_back(static_cast<double>((first - sorted.begin()) + (last - sorted.begin()) - 1) /
                        2 -
                    static_cast<double>(samples.size() - 1) / 2);
  }
  const double squares = std::inner_product(ranks.begin(), ranks.end(), ranks.begin(), 0.0);
  if (squares == 0) return 0;
  return std::inner_product(ranks.begin() + 1, ranks.end(), ranks.begin(), 0.0) / squares;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

}  // namespace

std::string_view time_verdict_name(TimeVerdict verdict) {
  switch (verdict) {
    case TimeVerdict::kFaster:
      return "faster";
    case TimeVerdict::kSlower:
      return "slower";
    case TimeVerdict::kNoDifference:
      break;
  }
  return "no difference";
}

TimeRatio compare_times(std::span<const double> first, std::span<const double> second,
                        double noise) {
  const std::vector<double> a = evenly_spaced(first);
  const std::vector<double> b = evenly_spaced(second);
  std::vector<double> ratios;
  ratios.reserve(a.size() * b.size());
  for (const double x : a) {
    for (const double y : b) ratios.push_back(y / x);
  }
  std::sort(ratios.begin(), ratios.end());

  TimeRatio result;
  result.of_medians =
      median_of({second.begin(), second.end()}) / median_of({first.begin(), first.end()});
  result.estimate = quantile(ratios, 0.5);
  const double correlation = std::clamp(
      std::max(neighbour_correlation(a), neighbour_correlation(b)), 0.0, kMostCorrelation);
  result.widened = std::sqrt((1 + correlation) / (1 - correlation));
  const double n = static_cast<double>(a.size());
  const double m = static_cast<double>(b.size());
  const double deviation = result.widened * std::sqrt(n * m * (n + m + 1) / 12);
  const double rank = n * m / 2 - kQuantile * deviation;  // from 1
  const auto outside = static_cast<std::size_t>(std::max(rank, 1.0)) - 1;
  result.low = ratios[outside];
  result.high = ratios[ratios.size() - 1 - outside];
  // Below rank 1 even the outermost ratios do not bound the estimate with 95 %.
  if (rank < 1) return result;
  if (result.high < 1 && result.estimate <= 1 - noise) result.verdict = TimeVerdict::kFaster;
  if (result.low > 1 && result.estimate >= 1 + noise) result.verdict = TimeVerdict::kSlower;
  return result;
}

}  // namespace run_model
