// Reads the content of one frame, and never beyond it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>

#include "rpc/connection.h"

namespace run_model::rpc {

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
