// What a task found in a picture, as JSON; run_model/README.md documents the members.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>

#include <run_model/postprocess.h>
#include <run_model/preprocessing.h>
#include <run_model/task.h>
#include <run_model/task_result.h>
#include "run_model/shared/json.h"

namespace run_model {

// The quantiles that reports have of a map.
inline constexpr std::array<double, 5> kMapShares{0.05, 0.25, 0.5, 0.75, 0.95};

// The name of a class of a mask; empty where it has none.
std::string segment_label(const Task& task, std::size_t index);

// Whether the class is where a mask shows nothing, and has no name of its own.
bool is_rest_of_mask(const Task& task, std::size_t index);

// COCO's run lengths of one thing, with the picture's size.
Json instance_mask_json(const InstanceMask& mask, const PreprocessReport& picture);

// A list of what a network saw of the picture, where that was not all of it.
Json regions_json(std::span<const SeenRegion> regions);

// Sets the members of an object: the kind of the task and what was found. `picture` is what
// preprocess() has reported.
void put_result(const Task& task, const TaskResult& result, const PreprocessReport& picture,
                Json& json);

}  // namespace run_model
