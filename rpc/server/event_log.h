// How the parts of the server tell what happens.
#pragma once

#include <functional>

#include <run_model/rpc/server.h>

namespace run_model::rpc {

using EventLog = std::function<void(const ServerEvent&)>;

}  // namespace run_model::rpc
