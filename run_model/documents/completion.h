// Completion of a program's command line in bash.
#pragma once

#include <string>

#include "run_model/shared/manual.h"

namespace run_model {

// A file for share/bash-completion/completions, named as the program; it needs nothing but bash 4.
// Flags are completed, values that are one of a few, files and folders; what is no flag is a file.
std::string bash_completion(const Manual& manual);

}  // namespace run_model
