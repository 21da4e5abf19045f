// When enough has been measured.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "run_model/run_model/measure/measure_flags.h"

namespace run_model {

enum class StoppedBy { kCount, kSeconds, kInterval };

// "count", "seconds" or "interval".
std::string_view stopped_by_name(StoppedBy stopped_by);

class StopRule {
 public:
  explicit StopRule(const MeasureSettings& settings) : settings_(settings) {}

  // To be asked after every sample; `seconds` have passed since the first one began. Says why to
  // stop, or nothing to go on.
  std::optional<StoppedBy> after(std::span<const double> samples, double seconds);

 private:
  bool interval_reached(std::span<const double> samples);

  const MeasureSettings& settings_;
  std::size_t next_look_ = 0;
};

}  // namespace run_model
