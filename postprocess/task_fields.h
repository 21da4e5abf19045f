// Tasks within other JSON documents.
#pragma once

#include <vector>

#include <run_model/task.h>
#include "base/json.h"

namespace run_model {

// A task or a list of tasks. Throws Error(kFormat).
std::vector<Task> tasks_field(const JsonField& field);

}  // namespace run_model
