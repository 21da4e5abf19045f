// The keys by which the tracker tells clients from one another.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "rpc/server/poll_set.h"

namespace run_model::rpc {

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
