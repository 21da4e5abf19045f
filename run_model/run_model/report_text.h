// Reports for people.
#pragma once

#include <string>

#include "run_model/run_model/report.h"

namespace run_model {

// The lines that TVM-Prep's wrapper printed, and the times. A network that takes blue first has its
// mean and deviation named by channel: "Mean: B=104 G=117 R=123".
std::string picture_report_text(const PictureReport& report);

std::string tensors_report_text(const TensorsReport& report);

}  // namespace run_model
