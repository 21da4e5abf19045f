#include "run_model/run_model/measure/timing_report.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "run_model/shared/formatted.h"
#include "run_model/shared/json.h"

namespace run_model {
namespace {

// From here on a share of the measured time is worth a word.
constexpr double kMaterialShare = 0.01;

// Milliseconds with as many decimals as show four digits of `scale`.
class Milliseconds {
 public:
  explicit Milliseconds(double scale) {
    if (scale > 0) decimals_ = std::min(std::max(3 - static_cast<int>(std::log10(scale)), 1), 6);
  }

  std::string operator()(double value) const { return formatted("%.*f", decimals_, value); }

 private:
  int decimals_ = 3;
};

void append_row(std::string& names, std::string& values, const char* name,
                const std::string& value) {
  const std::size_t width = std::max(std::string_view(name).size(), value.size()) + 2;
  names += std::string(width - std::string_view(name).size(), ' ') + name;
  values += std::string(width - value.size(), ' ') + value;
}

std::string statistics_table(const Statistics& run, const Milliseconds& shown) {
  std::string names, values;
  append_row(names, values, "min", shown(run.min));
  append_row(names, values, "median", shown(run.median));
  append_row(names, values, "mean", shown(run.mean));
  append_row(names, values, "p90", shown(run.p90));
  append_row(names, values, "p95", shown(run.p95));
  append_row(names, values, "p99", shown(run.p99));
  append_row(names, values, "max", shown(run.max));
  append_row(names, values, "std", shown(run.std));
  return names + "\n" + values + "\n";
}

std::string interval_line(const Statistics& run, const Milliseconds& shown) {
  if (!run.interval) return "  95 % interval of the median: takes six samples or more\n";
  return "  95 % interval of the median: " + shown(run.interval->low) + " to " +
         shown(run.interval->high) +
         formatted(" (%.2g %% wide)\n", 100 * run.relative_interval().value_or(0));
}

std::string pacing_lines(const PacingResult& pacing, const Milliseconds& shown) {
  return "  Paced: " + formatted("%g", pacing.fps) + " starts a second, " +
         counted(pacing.missed, "start") + " missed, idle " +
         formatted("%.1f %%", 100 * pacing.idle_share) + " of the time\n" +
         "  From planned start to end: median " + shown(pacing.latency.median) + ", p99 " +
         shown(pacing.latency.p99) + ", max " + shown(pacing.latency.max) +
         "; started late by: median " + shown(pacing.lateness.median) + ", max " +
         shown(pacing.lateness.max) + "\n";
}

Json statistics_json(const Statistics& statistics) {
  Json json = Json::object();
  json.put("count", statistics.count);
  json.put("min", statistics.min);
  json.put("median", statistics.median);
  json.put("mean", statistics.mean);
  json.put("p90", statistics.p90);
  json.put("p95", statistics.p95);
  json.put("p99", statistics.p99);
  json.put("max", statistics.max);
  json.put("std", statistics.std);
  Json interval;
  if (statistics.interval) {
    interval.put("confidence", 0.95);
    interval.put("low", statistics.interval->low);
    interval.put("high", statistics.interval->high);
  }
  json.put("median_interval", std::move(interval));
  return json;
}

Json pacing_json(const PacingResult& pacing) {
  Json json = Json::object();
  json.put("fps", pacing.fps);
  json.put("missed", pacing.missed);
  json.put("idle_share", pacing.idle_share);
  json.put("lateness", statistics_json(pacing.lateness));
  json.put("latency", statistics_json(pacing.latency));
  return json;
}

}  // namespace

std::string timing_text(const TimingMeasurement& measurement) {
  const Statistics& run = measurement.run;
  const Milliseconds shown(run.median);
  std::string result = "Repeated runs: " + counted(run.count, "sample");
  if (measurement.number > 1) {
    result += " of " + counted(static_cast<std::size_t>(measurement.number), "run");
  }
  if (measurement.instances > 1) {
    result += " by " + std::to_string(measurement.instances) + " instances at once";
  }
  result += " after " + counted(measurement.warm_up_runs, "warm-up run") + ", in milliseconds\n";
  result += statistics_table(run, shown) + interval_line(run, shown);
  result += "  Stopped by " + std::string(stopped_by_name(measurement.stopped_by)) + " after " +
            formatted("%.3g s", measurement.measured / 1000) +
            "; outputs are those of the first run, bit by bit\n";
  if (measurement.instances > 1) {
    result +=
        "  Throughput: " + formatted("%.4g", measurement.runs_per_second()) + " runs a second\n";
  }
  if (measurement.cold_cache_bytes > 0) {
    result += "  Caches emptied before each run by reading " +
              std::to_string(measurement.cold_cache_bytes >> 20) + " MiB\n";
  }
  if (measurement.pacing) result += pacing_lines(*measurement.pacing, shown);
  const double overhead = measurement.clock_overhead / measurement.number;
  if (overhead > kMaterialShare * run.median) {
    result += "  Reading the clock takes " + formatted("%.2g", 1e6 * measurement.clock_overhead) +
              " ns of each sample: --number 100 spreads it over as many runs\n";
  }
  return result;
}

Json timing_json(const TimingMeasurement& measurement) {
  Json json = statistics_json(measurement.run);
  json.put("number", measurement.number);
  json.put("instances", measurement.instances);
  json.put("runs_per_second", measurement.runs_per_second());
  json.put("warm_up_runs", measurement.warm_up_runs);
  json.put("warm_up", measurement.warm_up);
  json.put("measured", measurement.measured);
  json.put("stopped_by", stopped_by_name(measurement.stopped_by));
  json.put("clock_overhead", measurement.clock_overhead);
  json.put("cold_cache_bytes", measurement.cold_cache_bytes);
  json.put("pacing", measurement.pacing ? pacing_json(*measurement.pacing) : Json());
  Json samples;
  if (measurement.samples.size() <= kMaxSamplesInReport) {
    samples = Json::array();
    // The clock does not tell less than a nanosecond.
    for (const double sample : measurement.samples) {
      samples.add(std::round(sample * 1e6) / 1e6);
    }
  }
  json.put("samples", std::move(samples));
  return json;
}

}  // namespace run_model
