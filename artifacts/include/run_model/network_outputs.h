// A model's outputs as postprocessing takes them.
#pragma once

#include <vector>

#include <run_model/graph_executor.h>
#include <run_model/metadata.h>
#include <run_model/postprocess.h>

namespace run_model {

// The outputs of the last run by both of their names, with the scale and zero point that `metadata`
// (null: there is none) has for integers. They share the executor's memory: the next run changes
// them.
std::vector<NetworkOutput> network_outputs(const GraphExecutor& executor, const Metadata* metadata);

}  // namespace run_model
