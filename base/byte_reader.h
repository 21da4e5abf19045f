// Reads little-endian fields from untrusted bytes, checking every length before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <run_model/error.h>

namespace run_model {

// Every method takes `what`, the words for the field being read ("the number of tensors"), and
// throws Error(kFormat) naming the source, the offset and that field when the bytes do not hold it.
// A failed read leaves the offset where it was.
class ByteReader {
 public:
  // `source` names the bytes in errors, as in "parameters file 'm.params'"; `base` is where they
  // start in that source, so that offsets in errors are those that a hex dump of the file shows.
  ByteReader(std::span<const std::byte> bytes, std::string source, std::size_t base = 0)
      : bytes_(bytes), source_(std::move(source)), base_(base) {}

  // Position in the source, `base` included.
  std::size_t offset() const { return base_ + position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }
  bool at_end() const { return remaining() == 0; }
  const std::string& source() const { return source_; }

  std::uint8_t u8(std::string_view what) { return number<std::uint8_t>(what); }
  std::uint16_t u16(std::string_view what) { return number<std::uint16_t>(what); }
  std::uint32_t u32(std::string_view what) { return number<std::uint32_t>(what); }
  std::uint64_t u64(std::string_view what) { return number<std::uint64_t>(what); }
  std::int32_t i32(std::string_view what) { return number<std::int32_t>(what); }
  std::int64_t i64(std::string_view what) { return number<std::int64_t>(what); }

  // The next `count` bytes, not copied.
  std::span<const std::byte> bytes(std::uint64_t count, std::string_view what) {
    if (count > remaining()) {
      fail(std::string(what) + " takes " + std::to_string(count) + " bytes, but only " +
           std::to_string(remaining()) + " are left");
    }
    const auto view = bytes_.subspan(position_, static_cast<std::size_t>(count));
    position_ += view.size();
    return view;
  }

  // A 64-bit count of items that take at least `item_bytes` each: refused when it is above `limit`
  // or when the rest of the bytes cannot hold that many, so it is safe to allocate for.
  std::size_t count(std::uint64_t limit, std::size_t item_bytes, std::string_view what) {
    const std::size_t start = position_;
    const std::uint64_t value = u64(what);
    if (value > limit) {
      position_ = start;
      fail(std::string(what) + " is " + std::to_string(value) + ", more than the " +
           std::to_string(limit) + " that make sense");
    }
    if (item_bytes != 0 && value > remaining() / item_bytes) {
      const std::size_t left = remaining();
      position_ = start;
      fail(std::string(what) + " is " + std::to_string(value) + ", more than the remaining " +
           std::to_string(left) + " bytes can hold");
    }
    return static_cast<std::size_t>(value);
  }

  // A 64-bit length and that many bytes: how dmlc streams, and so TVM's files, write a string.
  std::string string(std::uint64_t max_length, std::string_view what) {
    const std::size_t length = count(max_length, 1, "the length of " + std::string(what));
    const auto view = bytes(length, what);
    return {reinterpret_cast<const char*>(view.data()), view.size()};
  }

  // Throws Error(kFormat): "<source> is malformed at byte <offset>: <problem>".
  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorKind::kFormat,
                source_ + " is malformed at byte " + std::to_string(offset()) + ": " + problem);
  }

 private:
  template <typename T>
  T number(std::string_view what) {
    const auto view = bytes(sizeof(T), what);
    std::make_unsigned_t<T> value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value |= static_cast<std::make_unsigned_t<T>>(static_cast<std::make_unsigned_t<T>>(view[i])
                                                    << (8 * i));
    }
    return static_cast<T>(value);
  }

  std::span<const std::byte> bytes_;
  std::string source_;
  std::size_t base_ = 0;
  std::size_t position_ = 0;
};

}  // namespace run_model
