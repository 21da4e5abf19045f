#include "rpc/server/sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

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

std::string peer_name(int socket) {
  SocketAddress address;
  address.length = sizeof(address.storage);
  return ::getpeername(socket, address.get(), &address.length) == 0 ? to_text(address) : "unknown";
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

}  // namespace run_model::rpc
