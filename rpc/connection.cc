#include "rpc/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <run_model/error.h>

namespace run_model::rpc {
namespace {

constexpr std::size_t kMostPieces = 4;

[[noreturn]] void disconnected() {
  throw Disconnected(std::string("the connection broke: ") + std::strerror(errno));
}

// Returns -1 where nothing is there and MSG_DONTWAIT was asked for.
ssize_t receive_once(int socket, void* data, std::size_t bytes, int flags) {
  while (true) {
    const ssize_t count = ::recv(socket, data, bytes, flags);
    if (count >= 0) return count;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return -1;
    if (errno == ECONNRESET || errno == ETIMEDOUT || errno == EHOSTUNREACH) return 0;
    if (errno != EINTR) disconnected();
  }
}

// At least one byte, waiting for it.
std::size_t receive_more(int socket, void* data, std::size_t bytes) {
  const ssize_t count = receive_once(socket, data, bytes, 0);
  if (count <= 0) throw Disconnected("the client went away in the middle of a request");
  return static_cast<std::size_t>(count);
}

}  // namespace

Connection::Connection(int socket, int spin_microseconds)
    : socket_(socket),
      // With a single CPU the other side could not send while this one looks.
      spin_microseconds_(std::thread::hardware_concurrency() > 1 ? spin_microseconds : 0),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(kBufferBytes)) {
  // An answer follows each request at once and carries the acknowledgement of it.
  const int off = 0;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof(off));
}

bool Connection::wait() {
  if (begin_ < end_) return true;
  begin_ = end_ = 0;
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::microseconds(spin_microseconds_);
  ssize_t count = -1;
  while (spin_microseconds_ > 0 && count < 0 && std::chrono::steady_clock::now() < deadline) {
    count = receive_once(socket_, buffer_.get(), kBufferBytes, MSG_DONTWAIT);
    // The client may be waiting for this very CPU.
    if (count < 0) std::this_thread::yield();
  }
  if (count < 0) count = receive_once(socket_, buffer_.get(), kBufferBytes, 0);
  end_ = count > 0 ? static_cast<std::size_t>(count) : 0;
  return count > 0;
}

std::size_t Connection::read_some(std::span<std::byte> into) {
  if (begin_ == end_) {
    // Large pieces go straight to where they belong.
    if (into.size() >= kBufferBytes) return receive_more(socket_, into.data(), into.size());
    begin_ = 0;
    end_ = receive_more(socket_, buffer_.get(), kBufferBytes);
  }
  const std::size_t count = std::min(into.size(), end_ - begin_);
  std::memcpy(into.data(), buffer_.get() + begin_, count);
  begin_ += count;
  return count;
}

void Connection::read(std::span<std::byte> into) {
  while (!into.empty()) into = into.subspan(read_some(into));
}

void Connection::peek(std::span<std::byte> into) {
  if (kBufferBytes - begin_ < into.size()) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= std::exchange(begin_, 0);
  }
  while (end_ - begin_ < into.size()) {
    end_ += receive_more(socket_, buffer_.get() + end_, kBufferBytes - end_);
  }
  std::memcpy(into.data(), buffer_.get() + begin_, into.size());
}

void Connection::write(std::initializer_list<std::span<const std::byte>> pieces) {
  std::array<iovec, kMostPieces> parts{};
  std::size_t count = 0;
  for (const std::span<const std::byte> piece : pieces) {
    if (piece.empty()) continue;
    parts.at(count++) = {const_cast<std::byte*>(piece.data()), piece.size()};
  }
  iovec* part = parts.data();
  while (count > 0) {
    msghdr message{};
    message.msg_iov = part;
    message.msg_iovlen = count;
    const ssize_t sent = ::sendmsg(socket_, &message, MSG_NOSIGNAL);
    if (sent < 0) {
      if (errno == EINTR) continue;
      disconnected();
    }
    auto left = static_cast<std::size_t>(sent);
    while (count > 0 && left >= part->iov_len) {
      left -= part->iov_len;
      ++part;
      --count;
    }
    if (count > 0) {
      part->iov_base = static_cast<char*>(part->iov_base) + left;
      part->iov_len -= left;
    }
  }
}

static_assert(std::endian::native == std::endian::little, "frames are read as they lie in memory");

void FrameReader::check(std::uint64_t bytes) const {
  if (bytes <= left_) return;
  throw Error(ErrorKind::kFormat,
              "a request is shorter than what it says it holds: " + std::to_string(bytes) +
                  " more bytes expected, " + std::to_string(left_) + " left");
}

void FrameReader::read(std::span<std::byte> into) {
  check(into.size());
  connection_.read(into);
  left_ -= into.size();
}

std::size_t FrameReader::read_some(std::span<std::byte> into) {
  into = into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left_)));
  if (into.empty()) check(1);
  const std::size_t count = connection_.read_some(into);
  left_ -= count;
  return count;
}

std::string FrameReader::text(std::uint64_t length) {
  check(length);
  // Memory follows what has come: a length alone costs the client nothing.
  constexpr std::uint64_t kFirstPiece = 64 * 1024;
  std::string text;
  while (text.size() < length) {
    const std::size_t before = text.size();
    const std::uint64_t piece =
        std::min(length - before, std::max<std::uint64_t>(before, kFirstPiece));
    text.resize(before + static_cast<std::size_t>(piece));
    read(std::as_writable_bytes(std::span(text).subspan(before)));
  }
  return text;
}

void FrameReader::skip_rest() {
  std::array<std::byte, 16 * 1024> buffer;
  while (left_ > 0) read_some(buffer);
}

void FrameReader::check_end() const {
  if (left_ == 0) return;
  throw Error(ErrorKind::kFormat, "a request is longer than what it holds: " +
                                      std::to_string(left_) + " bytes left over");
}

}  // namespace run_model::rpc
