// What the process of a session does.
#pragma once

#include <functional>

#include <run_model/rpc/server.h>

namespace run_model::rpc {

// Serves the client with the built-in functions and those that `add_functions` (if set) adds.
SessionBody make_session_body(const ServerOptions& options,
                              std::function<void(Registry&)> add_functions);

}  // namespace run_model::rpc
