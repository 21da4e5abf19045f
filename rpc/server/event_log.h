// How the parts of the server tell what happens.
#pragma once

#include <functional>

#include "rpc/server/server.h"

namespace run_model::rpc {

using EventLog = std::function<void(const ServerEvent&)>;

}  // namespace run_model::rpc
