// What rpc_server --help and --version print.
#pragma once

#include <string>

namespace run_model {

std::string rpc_server_help_text();

std::string rpc_server_version_text();

}  // namespace run_model
