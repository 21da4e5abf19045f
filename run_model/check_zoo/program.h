// The program check_zoo behind main().
#pragma once

#include <span>
#include <string>

namespace run_model {

// Does what `args` (without the program's name) ask for: the report goes to standard output, one
// sentence about a failure of check_zoo itself to standard error. Returns the exit code: 0 when all
// cases that could be run have passed, 8 when some failed, 77 when there was none (--allow-skip),
// others as <run_model/error.h> says.
int run_check_zoo(const char* program_name, std::span<const std::string> args);

}  // namespace run_model
