// The numbers that handshakes are made of: little-endian, as TVM sends them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace run_model::rpc {

using ByteVector = std::vector<std::byte>;

template <typename T>
void append_number(ByteVector& bytes, std::type_identity_t<T> value) {
  const auto raw = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

inline void append_text(ByteVector& bytes, std::string_view text) {
  const auto raw = std::as_bytes(std::span(text));
  bytes.insert(bytes.end(), raw.begin(), raw.end());
}

template <typename T>
T number_at(std::span<const std::byte> bytes, std::size_t offset = 0) {
  T value;
  std::memcpy(&value, bytes.subspan(offset, sizeof(T)).data(), sizeof(T));
  return value;
}

}  // namespace run_model::rpc
