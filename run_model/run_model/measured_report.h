// The part of a report that every kind of run has: how long it took, where, and on what.
#pragma once

#include <string>

#include "run_model/run_model/report.h"
#include "run_model/shared/json_values.h"

namespace run_model {

// "Time: …", then what was measured beyond that, in lines that end with a newline.
std::string run_report_text(const RunReport& report);

// Begins an object with the artifact, the threads and the machine.
Json run_report_start(const RunReport& report);

// Adds "timing", and "memory", "sweep" and "profile" where they were asked for.
void add_measurements(Json& json, const RunReport& report);

}  // namespace run_model
