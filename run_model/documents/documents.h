// What is laid out from a program's manual beside its --help.
#pragma once

#include <string>

#include "run_model/shared/manual.h"

namespace run_model {

// The manual page in the macros of man(7), UTF-8. Options, and the names of the arguments in the
// synopsis, are set as man-pages(7) asks.
std::string man_page(const Manual& manual);

// A file for share/bash-completion/completions, named as the program; it needs nothing but bash 4.
// Flags are completed, values that are one of a few, files and folders; what is no flag is a file.
std::string bash_completion(const Manual& manual);

}  // namespace run_model
