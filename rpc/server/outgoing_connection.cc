#include "rpc/server/outgoing_connection.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <run_model/error.h>

namespace run_model::rpc {
namespace {

constexpr std::chrono::seconds kLongestPause{30};
constexpr std::chrono::seconds kConnectTime{10};

}  // namespace

void OutgoingConnection::prepare(PollSet& polls) const {
  if (connected_) return;
  if (socket_) {
    polls.watch(socket_.get(), POLLOUT);
    polls.wake_at(deadline_);
  } else {
    polls.wake_at(next_try_);
  }
}

bool OutgoingConnection::step(TimePoint now) {
  if (connected_) return false;
  if (!socket_ && now >= next_try_) begin(now);
  return socket_ && check(now);
}

void OutgoingConnection::fail(TimePoint now, std::string why) {
  why_not_ = std::move(why);
  socket_.reset();
  connected_ = false;
  addresses_.clear();
  next_try_ = now + pause_;
  pause_ = std::min<Clock::duration>(pause_ * 2, kLongestPause);
}

OwnedFd OutgoingConnection::take(TimePoint now, Clock::duration pause) {
  connected_ = false;
  addresses_.clear();
  why_not_.clear();
  next_try_ = now + pause;
  return std::move(socket_);
}

void OutgoingConnection::begin(TimePoint now) {
  try {
    addresses_ = resolve(address_, false);
  } catch (const Error& error) {
    fail(Clock::now(), error.what());
    return;
  }
  std::reverse(addresses_.begin(), addresses_.end());
  try_next_address(now, "");
}

void OutgoingConnection::try_next_address(TimePoint now, const std::string& why) {
  std::string reason = why;
  while (!addresses_.empty()) {
    const SocketAddress address = addresses_.back();
    addresses_.pop_back();
    socket_ =
        OwnedFd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket_ &&
        (::connect(socket_.get(), address.get(), address.length) == 0 || errno == EINPROGRESS)) {
      deadline_ = now + kConnectTime;
      return;
    }
    reason = std::strerror(errno);
  }
  fail(now, reason);
}

bool OutgoingConnection::check(TimePoint now) {
  pollfd entry{socket_.get(), POLLOUT, 0};
  if (::poll(&entry, 1, 0) <= 0) {
    if (now >= deadline_) try_next_address(now, "no answer");
    return false;
  }
  int error = 0;
  socklen_t length = sizeof(error);
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (error != 0) {
    try_next_address(now, std::strerror(error));
    return false;
  }
  const int flags = ::fcntl(socket_.get(), F_GETFL);
  ::fcntl(socket_.get(), F_SETFL, flags & ~O_NONBLOCK);
  set_client_options(socket_.get());
  connected_ = true;
  why_not_.clear();
  return true;
}

}  // namespace run_model::rpc
