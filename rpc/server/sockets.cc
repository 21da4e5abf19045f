#include "rpc/server/sockets.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model::rpc {
namespace {

// A peer that is switched off: asked after 30 s of silence, then every 10 s, gone after 6
// questions; data that nobody acknowledges is given up after 60 s.
constexpr int kKeepAliveIdleSeconds = 30;
constexpr int kKeepAliveIntervalSeconds = 10;
constexpr int kKeepAliveCount = 6;
constexpr int kUnacknowledgedMilliseconds = 60000;

void set_option(int socket, int level, int name, int value) {
  // Refused by systems that do not have it; the connection works all the same.
  static_cast<void>(::setsockopt(socket, level, name, &value, sizeof(value)));
}

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

// Longer waits are taken up anew.
constexpr std::chrono::hours kLongest{1};

}  // namespace

std::vector<SocketAddress> resolve(const HostPort& address, bool to_listen) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | AI_NUMERICHOST | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const std::string port = std::to_string(address.port);
  int error = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    hints.ai_flags &= ~AI_NUMERICHOST;
    error = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  }
  if (error != 0) {
    throw Error(ErrorKind::kFile, "the host " + in_quotes(address.host) +
                                      " has no address: " + ::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<SocketAddress> addresses;
  for (const addrinfo* item = found; item != nullptr; item = item->ai_next) {
    SocketAddress& copy = addresses.emplace_back();
    std::memcpy(&copy.storage, item->ai_addr, item->ai_addrlen);
    copy.length = item->ai_addrlen;
  }
  return addresses;
}

std::string to_text(const SocketAddress& address) {
  std::array<char, NI_MAXHOST> host{};
  std::array<char, NI_MAXSERV> port{};
  if (::getnameinfo(address.get(), address.length, host.data(), host.size(), port.data(),
                    port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "unknown";
  }
  return to_text(HostPort{host.data(), std::atoi(port.data())});
}

void set_client_options(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalSeconds);
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveCount);
  set_option(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMilliseconds);
  acknowledge_at_once(socket);
}

void acknowledge_at_once(int socket) { set_option(socket, IPPROTO_TCP, TCP_QUICKACK, 1); }

bool peer_is_gone(int socket) {
  pollfd entry{socket, POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

long send_now(int socket, const void* data, std::size_t bytes) {
  while (true) {
    const ssize_t sent = ::send(socket, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return sent;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return -1;
  }
}

long receive_now(int socket, void* data, std::size_t bytes) {
  while (true) {
    const ssize_t got = ::recv(socket, data, bytes, MSG_DONTWAIT);
    if (got > 0) return got;
    if (got == 0) return -1;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return 0;
    if (errno != EINTR) return -1;
  }
}

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

void PollSet::wait() {
  int milliseconds = -1;
  if (wake_ != TimePoint::max()) {
    const Clock::duration left =
        std::clamp<Clock::duration>(wake_ - Clock::now(), Clock::duration::zero(), kLongest);
    milliseconds = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
  }
  ::poll(entries_.data(), entries_.size(), milliseconds);
}

bool PollSet::is_ready(int fd) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [fd](const pollfd& entry) { return entry.fd == fd && entry.revents != 0; });
}

}  // namespace run_model::rpc
