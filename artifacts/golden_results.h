// The results of a golden case: what a reference makes of a network's outputs, as run_model says
// it with --json.
#pragma once

#include <vector>

#include <run_model/task.h>
#include <run_model/task_result.h>
#include "base/json.h"

namespace run_model {

// A result for each of the tasks, and of its kind. Throws Error(kFormat).
std::vector<TaskResult> golden_results(const JsonField& field, const std::vector<Task>& tasks);

}  // namespace run_model
