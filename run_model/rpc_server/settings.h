// What rpc_server's command line asks for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <run_model/rpc/server.h>
#include "run_model/shared/arguments.h"

namespace run_model {

struct RpcServerSettings {
  HelpRequest help = HelpRequest::kNone;  // anything else: nothing below has been read
  rpc::ServerOptions server;
  bool silent = false;
  bool json = false;
};

// Sets gflags' flags from `args` (without the program's name) and reads the key file. Throws
// Error(kUsage) for flags that make no sense, and what rpc::read_auth_key throws.
RpcServerSettings read_rpc_server_settings(std::span<const std::string> args);

// "512M" as bytes; K, M and G are powers of 1024. Throws Error(kUsage) naming the flag.
std::uint64_t parse_size(const std::string& flag, std::string_view text);

// "host", "host:9090" or "[::1]:9090"; the port is 0 where there is none. Throws Error(kUsage).
rpc::HostPort parse_custom_address(std::string_view text);

}  // namespace run_model
