// Whether the server's options make sense together.
#pragma once

#include <run_model/rpc/server.h>

namespace run_model::rpc {

// Throws Error(kUsage) naming what does not.
void check_options(const ServerOptions& options);

}  // namespace run_model::rpc
