// Addresses and options of the server's sockets.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include <run_model/rpc/host_port.h>
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
std::string peer_name(int socket);

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

}  // namespace run_model::rpc
