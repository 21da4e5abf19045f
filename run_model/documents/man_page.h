// The manual page of a program.
#pragma once

#include <string>

#include "run_model/shared/manual.h"

namespace run_model {

// In the macros of man(7), UTF-8. Options, and the names of the arguments in the synopsis, are set
// as man-pages(7) asks.
std::string man_page(const Manual& manual);

}  // namespace run_model
