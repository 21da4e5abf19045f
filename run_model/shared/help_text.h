// What --help and --version print.
#pragma once

#include <string>

#include "run_model/shared/manual.h"

namespace run_model {

// At most 100 columns wide.
std::string help_text(const Manual& manual);

// "run_model 0.1.0" with a newline.
std::string version_text(const Manual& manual);

}  // namespace run_model
