// The program rpc_server behind main().
#pragma once

#include <functional>
#include <span>
#include <string>

#include <run_model/rpc/function.h>

namespace run_model {

// Does what `args` (without the program's name) ask for. Returns the exit code: 0 after SIGTERM,
// SIGINT or SIGHUP, others as <run_model/error.h> says. Clients find what `add_functions` adds
// besides the functions that TVM's clients need.
int run_rpc_server(std::span<const std::string> args,
                   const std::function<void(rpc::Registry&)>& add_functions = {});

}  // namespace run_model
