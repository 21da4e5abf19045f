// The program rpc_server behind main().
#pragma once

#include <span>
#include <string>

namespace run_model {

// Does what `args` (without the program's name) ask for. Returns the exit code: 0 after SIGTERM or
// SIGINT, others as runtime/error.h says.
int run_rpc_server(std::span<const std::string> args);

}  // namespace run_model
