// A connected stream socket, read through a buffer.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <stdexcept>

namespace run_model::rpc {

// The other side is gone: the only failure of a connection, and the end of it.
class Disconnected : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Connection {
 public:
  // Does not close `socket`. spin_microseconds: see wait().
  Connection(int socket, int spin_microseconds);

  // Waits until there is something to read; false when the other side has closed. Looks again and
  // again for spin_microseconds before it sleeps.
  bool wait();

  // Throws Disconnected when the other side closes before all is there.
  void read(std::span<std::byte> into);

  // Reads at least one byte (`into` is not empty).
  std::size_t read_some(std::span<std::byte> into);

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

}  // namespace run_model::rpc
