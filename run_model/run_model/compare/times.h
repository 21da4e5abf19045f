// The times of two reports of repeated runs: read back, and whether one is shorter than the other,
// beyond noise.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace run_model {

// Something about a measurement that times depend on: "CPU", "AMD EPYC".
struct Condition {
  std::string name;
  std::string value;  // empty: the report does not tell
};

struct TimedReport {
  std::vector<Condition> conditions;  // the same ones in the same order in every report
  std::vector<std::string> warnings;  // the report's own, about the machine
  std::vector<double> samples;        // milliseconds, in the order in which they were taken
};

// Reads what `run_model --json` prints when runs are repeated. Throws Error(kFile) when the file
// cannot be read, Error(kFormat) when it is damaged, no such report, or has fewer than
// kMinComparedSamples samples, and Error(kIncompatible) for another schema version.
TimedReport read_timed_report(const std::filesystem::path& path);

enum class TimeVerdict { kFaster, kSlower, kNoDifference };

// "faster", "slower" or "no difference".
std::string_view time_verdict_name(TimeVerdict verdict);

// Second over first: 0.9 is a tenth less time.
struct TimeRatio {
  double of_medians = 1.0;
  double estimate = 1.0;  // the median of all ratios of a second sample to a first one
  double low = 1.0;       // 95 % interval of the estimate
  double high = 1.0;
  // By how much the interval was widened because neighbouring samples resemble each other.
  double widened = 1.0;
  TimeVerdict verdict = TimeVerdict::kNoDifference;
};

// Fewer samples on either side are not compared.
inline constexpr std::size_t kMinComparedSamples = 6;

// `first` and `second` are in the order in which they were taken, all above 0, and at least
// kMinComparedSamples each. There is a difference where the interval does not contain 1 and the
// estimate is at least `noise` away from it: one program, started twice, differs by a little each
// time (where its memory lies, what the machine does besides), which samples of one start do not
// show.
//
// The estimate is Hodges and Lehmann's, its interval Moses', which belong to the rank sum test of
// Wilcoxon, Mann and Whitney (Hollander and Wolfe, "Nonparametric Statistical Methods",
// sections 4.2 and 4.3), on logarithms of the times, in the approximation for large samples. The
// test takes the samples for independent; its standard deviation is multiplied by
//   sqrt((1 + r) / (1 - r))
// with r the correlation of neighbours' ranks, the larger one of both sides, where that is above 0
// (Bayley and Hammersley, "The 'Effective' Number of Independent Observations in an Autocorrelated
// Time Series", 1946). Of more than 1000 samples a side, evenly spaced ones are used.
TimeRatio compare_times(std::span<const double> first, std::span<const double> second,
                        double noise);

}  // namespace run_model
