// Sockets as the server uses them: addresses, options, listening, and waiting for what is ready.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <run_model/rpc/server.h>
#include "base/file.h"

namespace run_model::rpc {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// The addresses of a host, those of numbers without asking anybody. May take as long as the
// system's resolver does. Throws Error(kFile) for a name that has none.
std::vector<SocketAddress> resolve(const HostPort& address, bool to_listen);

// "192.168.2.1:51234"
std::string to_text(const SocketAddress& address);

// A small answer is sent at once; a peer that is gone without a word is noticed within two minutes.
// What the system does not know of these is left out.
void set_client_options(int socket);

// Acknowledges what has come without delay, until the next delay: TVM's client sends its handshake
// in three pieces, each of which waits until the one before is acknowledged.
void acknowledge_at_once(int socket);

// Whether the other side has closed or is unreachable.
bool peer_is_gone(int socket);

// Sends without waiting. Returns what was taken, 0 for nothing at the moment, -1 when the peer is
// gone.
long send_now(int socket, const void* data, std::size_t bytes);

// Receives without waiting. Returns what has come, 0 for nothing at the moment, -1 when the peer
// has closed or is gone.
long receive_now(int socket, void* data, std::size_t bytes);

// The socket that clients connect to.
class Listener {
 public:
  // Takes the first free port in [port, port_end); any free one for port 0. Throws Error(kFile)
  // when there is none or the host is not this machine's, Error(kUsage) for a range that is none.
  Listener(const std::string& host, int port, int port_end);

  int fd() const { return socket_.get(); }
  const HostPort& address() const { return address_; }

  // Whether only programs on this machine can connect.
  bool is_loopback() const { return loopback_; }

  // The next client that waits; none when nobody does. `peer` is set to its address.
  OwnedFd accept(std::string& peer);

 private:
  OwnedFd socket_;
  HostPort address_;
  bool loopback_ = false;
};

using Clock = std::chrono::steady_clock;
using TimePoint = Clock::time_point;

// At most some thirty years, which can still be added to any time of the clock: clients may ask for
// more, and nobody waits for it.
inline Clock::duration seconds_of(double seconds) {
  constexpr double kLongest = 1e9;
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
}

// What the server's loop waits for.
//
// Made anew for each round: every part of the server says what it waits for, the loop waits, and
// then every part does what can be done without waiting, whatever it was that ended the wait.
class PollSet {
 public:
  void watch(int fd, short events) { entries_.push_back({fd, events, 0}); }
  void wake_at(TimePoint when) {
    if (when < wake_) wake_ = when;
  }

  // Until one of them is ready or the earliest of the times has come.
  void wait();

  bool is_ready(int fd) const;

 private:
  std::vector<pollfd> entries_;
  TimePoint wake_ = TimePoint::max();
};

}  // namespace run_model::rpc
