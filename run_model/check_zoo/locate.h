// check_zoo --locate: where in the graph a wrong result comes from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <run_model/debug_executor.h>
#include "run_model/check_zoo/settings.h"

namespace run_model {

// Runs the golden case's picture node by node against the reference's intermediate tensors,
// <intermediates>/<model>/<picture>.npz, and says in lines of text which node departs first, or why
// that cannot be told. Throws nothing.
std::vector<std::string> locate_case(DebugExecutor& executor, const std::filesystem::path& golden,
                                     const CheckSettings& settings);

}  // namespace run_model
