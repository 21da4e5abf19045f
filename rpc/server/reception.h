// Clients between their connection and their session.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <run_model/rpc/server.h>
#include "base/file.h"
#include "rpc/server/handshake.h"
#include "rpc/server/sessions/farewell.h"
#include "rpc/server/sessions/session_table.h"
#include "rpc/server/sockets.h"

namespace run_model::rpc {

class Reception {
 public:
  // All of these outlive this. `accept_key` says whether a client with that key is to be served,
  // and is asked once for each.
  Reception(Listener& listener, SessionTable& sessions, const ServerOptions& options,
            std::function<bool(const std::string&)> accept_key, EventLog log);

  // Clients that have shown a key and wait for a session to end. A server that is busy still asks
  // who comes, so that those who may wait do so in their order and the others are gone.
  int waiting() const;

  void prepare(PollSet& polls) const;
  void step(TimePoint now);

 private:
  struct Client {
    OwnedFd socket;
    std::string peer;
    std::string host;  // peer without the port
    TimePoint deadline;
    Handshake handshake;
    bool gone = false;
  };

  bool has_room() const;
  void accept(TimePoint now);
  void make_room(const std::string& host);
  void advance(Client& client, TimePoint now);
  void receive(Client& client);
  void drop(Client& client, const std::string& why);
  void refuse(Client& client, TimePoint now);
  void start(Client& client, TimePoint now);

  Listener& listener_;
  SessionTable& sessions_;
  const ServerOptions& options_;
  std::function<bool(const std::string&)> accept_key_;
  EventLog log_;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Farewell>> refused_;
  TimePoint accept_again_{};
  TimePoint refusals_since_{};
  int refusals_ = 0;
};

}  // namespace run_model::rpc
