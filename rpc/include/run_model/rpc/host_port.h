// "board.local:9090", "192.168.2.99:9090", "[fe80::1]:9090".
#pragma once

#include <string>
#include <string_view>

namespace run_model::rpc {

struct HostPort {
  std::string host;
  int port = 0;

  bool operator==(const HostPort&) const = default;
};

// An address of IPv6 is in brackets. Throws Error(kUsage) naming `what` (a flag) for what is no
// such thing, or whose port is not within 1 to 65535.
HostPort parse_host_port(const std::string& what, std::string_view text);

// As parse_host_port reads it.
std::string to_text(const HostPort& address);

}  // namespace run_model::rpc
