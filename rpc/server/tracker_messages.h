// What is said to TVM's tracker, and how its answers are read.
//
// python/tvm/rpc/tracker.py and base.py of v0.18.0; numbers little-endian. After i32 0x2f271 from
// both sides, each message is an i32 length and JSON; the tracker answers each with one:
//   [5, {"key": "server:KEY", "addr": [host or null, port]}] (update_info)     -> 0
//   [3, "KEY", [port, "matchkey"], host or null] (put)                         -> 0
//   [7] (get_pending_matchkeys)                                                 -> ["matchkey", …]
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rpc/server/wire.h"

namespace run_model::rpc {

inline constexpr std::int32_t kTrackerMagic = 0x2f271;

// Whoever answers at the tracker's address may be something else.
inline constexpr std::int32_t kMostTrackerBytes = 1 << 20;

// What clients are to connect to. An empty host: the one that the tracker sees.
struct Advertised {
  std::string host;
  int port = 0;
};

ByteVector update_info_message(const std::string& key, const Advertised& advertised);
ByteVector put_message(const std::string& key, const std::string& matchkey,
                       const Advertised& advertised);
ByteVector pending_matchkeys_message();

// Whether the answer says that all went well.
bool is_success(const std::string& json);

// None for what is no list of texts.
std::optional<std::vector<std::string>> read_matchkeys(const std::string& json);

}  // namespace run_model::rpc
