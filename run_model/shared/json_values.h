// Pieces that several JSON reports share.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include <run_model/graph_executor.h>
#include <run_model/package.h>
#include <run_model/preprocessing.h>

namespace run_model {

// Keeps the fields in the order in which they are set.
using Json = nlohmann::ordered_json;

inline constexpr int kReportSchema = 1;

Json package_json(const Package& package);

// {"name": …, "shape": […], "dtype": …}
Json tensor_json(const TensorInfo& info);

// A picture's way to the network: resizer, fit, colour order, scale, mean and deviation, each
// number as the shortest decimal that is the same float32.
Json preprocessing_json(const Preprocessing& preprocessing);

Json text_or_null(const std::string& text);

// With a newline at the end. Bytes that are no UTF-8 (in file names) are replaced.
std::string json_text(const Json& json);

}  // namespace run_model
