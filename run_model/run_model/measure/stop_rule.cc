#include "run_model/run_model/measure/stop_rule.h"

#include <algorithm>

#include "run_model/run_model/measure/statistics.h"

namespace run_model {
namespace {

// Fewer samples can agree by chance.
constexpr std::size_t kFirstLook = 20;

}  // namespace

std::string_view stopped_by_name(StoppedBy stopped_by) {
  switch (stopped_by) {
    case StoppedBy::kCount:
      return "count";
    case StoppedBy::kSeconds:
      return "seconds";
    case StoppedBy::kInterval:
      break;
  }
  return "interval";
}

std::optional<StoppedBy> StopRule::after(std::span<const double> samples, double seconds) {
  if (settings_.max_seconds > 0 && seconds >= settings_.max_seconds) return StoppedBy::kSeconds;
  if (seconds < settings_.min_seconds) return std::nullopt;
  if (settings_.until_interval && interval_reached(samples)) return StoppedBy::kInterval;
  if (samples.size() < settings_.repeat) return std::nullopt;
  return samples.size() == settings_.repeat ? StoppedBy::kCount : StoppedBy::kSeconds;
}

// Every look is another chance to stop on a lucky streak, and costs a sort: so they get rarer.
bool StopRule::interval_reached(std::span<const double> samples) {
  if (samples.size() < std::max(kFirstLook, next_look_)) return false;
  next_look_ = samples.size() + samples.size() / 8;
  const std::optional<double> width = describe(samples).relative_interval();
  return width && *width <= *settings_.until_interval;
}

}  // namespace run_model
