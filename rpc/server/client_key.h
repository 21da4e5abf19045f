// What a client says of itself in the handshake.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace run_model::rpc {

// "client:KEY -timeout=12.5": the key that it looks for, and options after white space.
struct ClientKey {
  std::string key;
  double timeout_seconds = 0;  // 0: none
};

// None for what is not a client's. Options of other names, and values that are no time, are ignored
// as TVM's server ignores them.
std::optional<ClientKey> parse_client_key(std::string_view text);

}  // namespace run_model::rpc
