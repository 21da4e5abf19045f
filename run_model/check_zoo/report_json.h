// check_zoo's report for programs: one JSON object, schema version 1, documented in
// run_model/README.md.
#pragma once

#include <string>
#include <vector>

#include "run_model/check_zoo/table.h"

namespace run_model {

std::string zoo_report_json(const std::vector<JobResult>& jobs, const TableOptions& options,
                            const RepeatCommand& repeat);

}  // namespace run_model
