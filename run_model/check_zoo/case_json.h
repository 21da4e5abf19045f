// A case's result as JSON: what a worker process prints for check_zoo, and a part of its report.
#pragma once

#include "base/json.h"
#include "run_model/check_zoo/result.h"
#include "run_model/shared/json_values.h"

namespace run_model {

Json case_json(const CaseResult& result);

// The inverse. Throws Error(kFormat): a worker that crashes may have written anything.
CaseResult parse_case(const JsonField& field);

}  // namespace run_model
