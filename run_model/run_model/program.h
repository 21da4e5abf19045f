// The program behind main().
#pragma once

#include <span>
#include <string>

namespace run_model {

// Does what `args` (without the program's name) ask for: the report goes to standard output, one
// sentence about a failure to standard error. Returns the exit code, see <run_model/error.h>.
int run_program(const char* program_name, std::span<const std::string> args);

}  // namespace run_model
