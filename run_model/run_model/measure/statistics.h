// A sample of durations in a few numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace run_model {

// Where the true median lies with a confidence of at least 95 %, whatever the distribution.
struct MedianInterval {
  double low = 0.0;
  double high = 0.0;
};

struct Statistics {
  std::size_t count = 0;
  double min = 0.0;
  double median = 0.0;
  double mean = 0.0;
  double p90 = 0.0;
  double p95 = 0.0;
  double p99 = 0.0;
  double max = 0.0;
  double std = 0.0;  // of a sample (divided by count - 1); 0 for a single value
  std::optional<MedianInterval> interval;  // nothing for fewer than six values

  // Width of the interval as a share of the median; nothing where there is no interval.
  std::optional<double> relative_interval() const;
};

// All zero for no values.
Statistics describe(std::span<const double> values);

// The share `q` (0 to 1) of the sorted values, interpolated linearly between its neighbours as
// numpy.percentile does by default (method 7 of Hyndman and Fan, "Sample Quantiles in Statistical
// Packages", 1996). `sorted` must not be empty.
double quantile(std::span<const double> sorted, double q);

// The 95 % interval of the median between two of the sorted values: the narrowest symmetric pair of
// ranks for which the binomial distribution with p = 1/2 gives at least 95 % (Conover, "Practical
// Nonparametric Statistics", section 3.2). It takes the values for independent; a drift of the
// machine's speed makes it too narrow. Nothing for fewer than six values.
std::optional<MedianInterval> median_interval(std::span<const double> sorted);

}  // namespace run_model
