// Reports for programs: one JSON object each, schema version 1, documented in run_model/README.md.
#pragma once

#include <string>

#include "run_model/run_model/report.h"

namespace run_model {

std::string picture_report_json(const PictureReport& report);

std::string tensors_report_json(const TensorsReport& report);

}  // namespace run_model
