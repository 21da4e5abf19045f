// The cases of data/golden.json.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include <run_model/postprocess.h>

namespace run_model {

const nlohmann::json& golden();

PreprocessReport picture_of(const nlohmann::json& field);

// The file keeps them in the order of their names, and tasks ask by name or number.
std::vector<NetworkOutput> outputs_of(const nlohmann::json& field);

}  // namespace run_model
