// A case's result as JSON: what a worker process prints for check_zoo, and a part of its report.
#pragma once

#include "run_model/check_zoo_result.h"
#include "run_model/json_values.h"
#include "runtime/json_field.h"

namespace run_model {

Json case_json(const CaseResult& result);

// The inverse. Throws Error(kFormat): a worker that crashes may have written anything.
CaseResult parse_case(const JsonField& field);

}  // namespace run_model
