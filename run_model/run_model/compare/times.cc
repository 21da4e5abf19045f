#include "run_model/run_model/compare/times.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include <run_model/error.h>
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "run_model/run_model/measure/statistics.h"
#include "run_model/run_model/measure/timing_report.h"
#include "run_model/shared/json.h"

namespace run_model {
namespace {

// Room for kMaxSamplesInReport samples and a large profile.
constexpr std::size_t kMaxReportBytes = std::size_t{32} << 20;
constexpr std::size_t kMaxWarnings = 100;

// The value at the end of a path of members as text; empty where one of them is not there.
std::string text_at(const nlohmann::json& root, std::initializer_list<const char*> path) {
  const nlohmann::json* value = &root;
  for (const char* key : path) {
    if (!value->is_object() || !value->contains(key)) return "";
    value = &(*value)[key];
  }
  if (value->is_null() || value->is_object()) return "";
  if (value->is_string()) return value->get<std::string>();
  // Lists of numbers; deeper ones are none of a report's.
  if (value->is_array()) {
    std::string text;
    for (const nlohmann::json& item : *value) {
      if (item.is_primitive()) text += (text.empty() ? "" : ",") + item.dump();
    }
    return text;
  }
  return value->dump();
}

std::vector<Condition> conditions_of(const nlohmann::json& root) {
  // A report that does not tell is of one.
  std::string instances = text_at(root, {"timing", "repeated", "instances"});
  if (instances.empty()) instances = "1";
  return {
      {"model", text_at(root, {"model"})},
      {"target", text_at(root, {"artifact", "tvm_target"})},
      {"library", text_at(root, {"fingerprints", "library"})},
      {"inputs", text_at(root, {"fingerprints", "inputs"})},
      {"machine", text_at(root, {"machine", "architecture"})},
      {"board", text_at(root, {"machine", "board"})},
      {"CPU", text_at(root, {"machine", "cpu"})},
      {"governor", text_at(root, {"machine", "governor"})},
      {"kernel", text_at(root, {"machine", "kernel"})},
      {"threads", text_at(root, {"threads"})},
      {"CPUs", text_at(root, {"thread_plan", "cpus"})},
      {"spin time", text_at(root, {"thread_plan", "spin_microseconds"})},
      {"runs in a sample", text_at(root, {"timing", "repeated", "number"})},
      {"instances", instances},
      {"cold cache", text_at(root, {"timing", "repeated", "cold_cache_bytes"})},
      {"starts a second", text_at(root, {"timing", "repeated", "pacing", "fps"})},
  };
}

std::vector<std::string> warnings_of(const nlohmann::json& root) {
  std::vector<std::string> warnings;
  if (!root.contains("machine") || !root["machine"].is_object()) return warnings;
  const auto list = root["machine"].find("warnings");
  if (list == root["machine"].end() || !list->is_array()) return warnings;
  for (const nlohmann::json& item : *list) {
    if (item.is_string() && warnings.size() < kMaxWarnings) warnings.push_back(item);
  }
  return warnings;
}

std::vector<double> samples_of(const JsonField& root, const std::string& file) {
  constexpr char kHint[] = "run_model … --repeat 100 --json prints such a report";
  const auto timing = find_member(root, "timing");
  const auto repeated = timing ? find_member(*timing, "repeated") : std::nullopt;
  const auto list = repeated ? find_member(*repeated, "samples") : std::nullopt;
  if (!list) {
    throw Error(ErrorKind::kFormat, file + " holds no samples of repeated runs", kHint);
  }
  const std::size_t count = list->array_size();
  if (count < kMinComparedSamples || count > kMaxSamplesInReport) {
    list->fail("has " + std::to_string(count) + " samples, expected " +
               std::to_string(kMinComparedSamples) + " to " + std::to_string(kMaxSamplesInReport));
  }
  std::vector<double> samples;
  samples.reserve(count);
  for (std::size_t i = 0; i < count; ++i) samples.push_back(positive_number(list->at(i)));
  return samples;
}

}  // namespace

TimedReport read_timed_report(const std::filesystem::path& path) {
  const std::string file = path_in_quotes(path);
  const std::vector<std::byte> bytes = read_file(path, kMaxReportBytes, "a report of run_model");
  const JsonDocument json(as_text(bytes), file,
                          "give what run_model --print-time --json has printed, or NumPy files");
  const JsonField root = json.root();
  check_schema_version(root, kReportSchema, file, "use the run_model that has written it");
  if (root.has("error")) {
    throw Error(ErrorKind::kFormat, file + " is the report of a run that failed");
  }
  return {conditions_of(json.value()), warnings_of(json.value()), samples_of(root, file)};
}

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
