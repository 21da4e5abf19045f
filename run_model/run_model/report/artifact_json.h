// An artifact, its tensors and a picture's way to it as JSON: pieces of several reports.
#pragma once

#include <vector>

#include <run_model/graph_executor.h>
#include <run_model/package.h>
#include <run_model/preprocessing.h>
#include "run_model/shared/json.h"

namespace run_model {

Json package_json(const Package& package);

// {"name": …, "shape": […], "dtype": …}
Json tensor_json(const TensorInfo& info);

Json tensors_json(const std::vector<TensorInfo>& tensors);

// A picture's way to the network: resizer, fit, colour order, scale, mean and deviation, each
// number as the shortest decimal that is the same float32.
Json preprocessing_json(const Preprocessing& preprocessing);

}  // namespace run_model
