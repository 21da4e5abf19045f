// What is said to TVM's tracker, how its answers are read, and the keys by which it tells clients
// from one another.
//
// python/tvm/rpc/tracker.py and base.py of v0.18.0; numbers little-endian. After i32 0x2f271 from
// both sides, each message is an i32 length and JSON; the tracker answers each with one:
//   [5, {"key": "server:KEY", "addr": [host or null, port]}] (update_info)     -> 0
//   [3, "KEY", [port, "matchkey"], host or null] (put)                         -> 0
//   [7] (get_pending_matchkeys)                                                 -> ["matchkey", …]
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "rpc/server/sockets.h"
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

// The server puts one random key into the tracker for each session that it could start; a client
// that the tracker gives the server to connects with that key, once. A client that has been given a
// key and does not come would block the session for ever, so its key is replaced after a while.
class Matchkeys {
 public:
  explicit Matchkeys(std::string key) : key_(std::move(key)) {}

  // "KEY:0.1234…" as TVM's tracker takes it apart at the last colon; unguessable.
  std::string add();

  // Whether the key is one of them; it is none afterwards.
  bool take(const std::string& key);

  // Which of them the tracker still has. Returns those that it has given away some time ago, which
  // are none any more.
  std::vector<std::string> update(const std::vector<std::string>& pending, TimePoint now);

  void clear() { given_away_.clear(); }
  std::size_t size() const { return given_away_.size(); }

 private:
  std::string key_;
  // Since when it is known that the tracker has given it away; TimePoint::max(): not yet.
  std::map<std::string, TimePoint, std::less<>> given_away_;
};

}  // namespace run_model::rpc
