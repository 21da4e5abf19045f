// Times several executors that run at the same time.
#pragma once

#include <functional>
#include <span>

#include "run_model/run_model/measure/timing.h"

namespace run_model {

// Calls each of `runs` in a thread of its own, again and again until the first of them has been
// measured as the settings say; settings.cold_cache and fps are not for this. All warm up first,
// and begin together. The result has the samples of all, in no particular order, that were taken
// whole before the end; runs_per_second counts them. What a run throws ends all, and passes
// through.
TimingMeasurement measure_instances(std::span<const std::function<void()>> runs,
                                    const MeasureSettings& settings);

}  // namespace run_model
