// Times as text and as JSON.
#pragma once

#include <string>

#include "run_model/run_model/measure/timing.h"
#include "run_model/shared/json.h"

namespace run_model {

// A table of the statistics and what is to be known about them, in lines that end with a newline.
// All in milliseconds.
std::string timing_text(const TimingMeasurement& measurement);

// The member "repeated" of a report's "timing". A measurement of more than kMaxSamplesInReport
// samples has null for them: --times has them all.
inline constexpr std::size_t kMaxSamplesInReport = 100'000;
Json timing_json(const TimingMeasurement& measurement);

}  // namespace run_model
