// The results of a golden case: what a reference makes of a network's outputs, as run_model says
// it with --json.
#pragma once

#include <filesystem>
#include <vector>

#include <run_model/task.h>
#include <run_model/task_result.h>
#include "base/json.h"

namespace run_model {

// A result for each of the tasks, and of its kind; maps and images without their pixels. Throws
// Error(kFormat).
std::vector<TaskResult> golden_results(const JsonField& field, const std::vector<Task>& tasks);

// The pixels of maps and images, of which PICTURE.N.npy beside PICTURE.json has those of result N:
// float32 [height, width], NaN where nothing was seen, or uint8 [height, width, 3], with a fourth
// channel of 255 where the picture was seen and of 0 elsewhere. Throws Error(kFile),
// Error(kFormat).
void read_golden_pixels(const std::filesystem::path& golden, std::vector<TaskResult>& results);

}  // namespace run_model
