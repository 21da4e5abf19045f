// What --help and --version print.
#pragma once

#include <string>

namespace run_model {

std::string help_text();

// "run_model 0.1.0"
std::string version_text();

}  // namespace run_model
