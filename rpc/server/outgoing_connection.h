// A connection that the server makes itself, again and again until it stands.
#pragma once

#include <string>
#include <vector>

#include <run_model/rpc/server.h>
#include "base/file.h"
#include "rpc/server/sockets.h"

namespace run_model::rpc {

class OutgoingConnection {
 public:
  explicit OutgoingConnection(HostPort address) : address_(std::move(address)) {}

  const HostPort& address() const { return address_; }

  // The connected socket, which waits (no O_NONBLOCK); -1 while there is none.
  int socket() const { return connected_ ? socket_.get() : -1; }

  // While there is none.
  void prepare(PollSet& polls) const;
  // True in the step in which the connection has come about. Asks for the host's address, which can
  // take as long as the system's resolver does.
  bool step(TimePoint now);

  // It has proved useless: closes it and tries again after a pause, from 1 s on twice as long each
  // time, up to 30 s.
  void fail(TimePoint now, std::string why);

  // It has proved useful: the next pause is 1 s again.
  void succeed() { pause_ = kFirstPause; }

  // Takes the socket out; the next connection is begun after `pause`.
  OwnedFd take(TimePoint now, Clock::duration pause);

  // Why the last attempt has failed; empty where there was none.
  const std::string& why_not() const { return why_not_; }

 private:
  static constexpr std::chrono::seconds kFirstPause{1};

  void begin(TimePoint now);
  void try_next_address(TimePoint now, const std::string& why);
  bool check(TimePoint now);

  HostPort address_;
  std::vector<SocketAddress> addresses_;  // left to try
  OwnedFd socket_;
  bool connected_ = false;
  TimePoint deadline_{};  // of connecting
  TimePoint next_try_{};  // while there is no socket
  Clock::duration pause_ = kFirstPause;
  std::string why_not_;
};

}  // namespace run_model::rpc
