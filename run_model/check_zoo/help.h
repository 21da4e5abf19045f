// What check_zoo --help and --version print.
#pragma once

#include <string>

namespace run_model {

std::string check_zoo_help_text();

std::string check_zoo_version_text();

}  // namespace run_model
