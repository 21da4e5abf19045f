// A connected stream socket, read through a buffer, and the frames that come on it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace run_model::rpc {

// The other side is gone: the only failure of a connection, and the end of it.
class Disconnected : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Connection {
 public:
  static constexpr std::size_t kMostPeekedBytes = 64;

  // Does not close `socket`. spin_microseconds: see wait().
  Connection(int socket, int spin_microseconds);

  // Waits until there is something to read; false when the other side has closed. Looks again and
  // again for spin_microseconds before it sleeps.
  bool wait();

  // Throws Disconnected when the other side closes before all is there.
  void read(std::span<std::byte> into);

  // Reads at least one byte (`into` is not empty).
  std::size_t read_some(std::span<std::byte> into);

  // What the next read() gives, up to kMostPeekedBytes of it; read() gives it again.
  void peek(std::span<std::byte> into);

  // Sends all pieces, one after another.
  void write(std::initializer_list<std::span<const std::byte>> pieces);

 private:
  static constexpr std::size_t kBufferBytes = 64 * 1024;

  int socket_;
  int spin_microseconds_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
};

// Reads the content of one frame, and never beyond it.
//
// Throws Error(kFormat) where the frame is shorter than what it says it holds; the rest of it can
// then still be skipped and the client be told. Disconnected, from the connection, is final.
class FrameReader {
 public:
  // `bytes` of the frame are still to come.
  FrameReader(Connection& connection, std::uint64_t bytes)
      : connection_(connection), left_(bytes) {}

  std::uint64_t left() const { return left_; }

  template <typename T>
  T number() {
    static_assert(std::is_arithmetic_v<T>);
    T value;
    read(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }

  void read(std::span<std::byte> into);

  // As many of the next numbers as there are, at most N; read() gives them again.
  template <typename T, std::size_t N>
  std::span<T> peek(std::array<T, N>& numbers) {
    static_assert(sizeof(numbers) <= Connection::kMostPeekedBytes);
    const auto found = std::span(numbers).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(N, left_ / sizeof(T))));
    connection_.peek(std::as_writable_bytes(found));
    return found;
  }

  // As Connection::read_some, but not beyond the frame; at least one byte must be left.
  std::size_t read_some(std::span<std::byte> into);

  std::string text(std::uint64_t length);

  // Throws unless that many bytes are left: before memory for them is asked for.
  void check(std::uint64_t bytes) const;

  void skip_rest();

  // Throws unless the frame has been read to its end.
  void check_end() const;

 private:
  Connection& connection_;
  std::uint64_t left_;
};

}  // namespace run_model::rpc
