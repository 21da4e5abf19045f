// Serves clients that come through TVM's RPC proxy, for a server that they cannot reach.
#pragma once

#include <string>

#include <run_model/rpc/server.h>
#include "rpc/server/outgoing_connection.h"
#include "rpc/server/sessions/session_table.h"
#include "rpc/server/wire.h"

namespace run_model::rpc {

// Connects to the proxy as "server:KEY" and waits until the proxy puts a client's key and then its
// data onto the connection (python/tvm/rpc/proxy.py, v0.18.0); connects again for the next client.
class ProxyClient {
 public:
  // `sessions` outlives this.
  ProxyClient(HostPort proxy, std::string key, SessionTable& sessions, EventLog log);

  const HostPort& address() const { return connection_.address(); }

  void prepare(PollSet& polls) const;
  void step(TimePoint now);

 private:
  void begin();
  void lose(TimePoint now, const std::string& why);
  void receive(TimePoint now);
  void handle(TimePoint now);
  void log(bool warning, std::string message) const;

  OutgoingConnection connection_;
  std::string key_;
  SessionTable& sessions_;
  EventLog log_;
  bool told_ = false;
  bool waiting_told_ = false;
  std::size_t wanted_ = 0;  // bytes in all; nothing is read beyond the handshake
  ByteVector received_;
};

}  // namespace run_model::rpc
