#include "rpc/server/listener.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include <run_model/error.h>
#include "base/text.h"
#include "rpc/server/sockets.h"

namespace run_model::rpc {
namespace {

// Clients that wait for the sessions before them.
constexpr int kBacklog = 128;

bool is_loopback(const SocketAddress& address) {
  if (address.storage.ss_family == AF_INET) {
    const auto* ipv4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
    return ntohl(ipv4->sin_addr.s_addr) >> 24 == 127;
  }
  const auto* ipv6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  return address.storage.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&ipv6->sin6_addr) != 0;
}

// An empty result where the port is taken.
OwnedFd listen_at(const SocketAddress& address) {
  OwnedFd socket(
      ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  if (socket && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
      ::bind(socket.get(), address.get(), address.length) == 0 &&
      ::listen(socket.get(), kBacklog) == 0) {
    return socket;
  }
  if (errno == EADDRINUSE) return OwnedFd();
  throw Error(ErrorKind::kFile,
              "cannot listen on " + to_text(address) + ": " + std::strerror(errno));
}

}  // namespace

Listener::Listener(const std::string& host, int port, int port_end) {
  if (port == 0) port_end = 1;
  if (port < 0 || port_end > 65536 || port_end <= port) {
    throw Error(
        ErrorKind::kUsage,
        "there is no port from " + std::to_string(port) + " to below " + std::to_string(port_end),
        "ports are 1 to 65535, and 0 for any free one");
  }
  for (int candidate = port; candidate < port_end; ++candidate) {
    const SocketAddress wanted = resolve({host, candidate}, true).at(0);
    socket_ = listen_at(wanted);
    if (!socket_) continue;
    SocketAddress bound;
    bound.length = sizeof(bound.storage);
    if (::getsockname(socket_.get(), bound.get(), &bound.length) != 0) {
      throw Error(ErrorKind::kInternal, "a socket has no name");
    }
    address_ = parse_host_port("the listening address", to_text(bound));
    loopback_ = rpc::is_loopback(bound);
    return;
  }
  throw Error(ErrorKind::kFile,
              "every port of " + in_quotes(host) + " from " + std::to_string(port) + " to " +
                  std::to_string(port_end - 1) + " is in use",
              "choose others with --port and --port-end");
}

OwnedFd Listener::accept(std::string& peer) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  // Not inheriting O_NONBLOCK: a session reads its socket with waiting.
  OwnedFd client(::accept4(socket_.get(), address.get(), &address.length, SOCK_CLOEXEC));
  if (client) peer = to_text(address);
  return client;
}

}  // namespace run_model::rpc
