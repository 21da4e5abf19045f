// The one cursor over untrusted bytes: numbers of either byte order, in sequence or at an offset,
// every length checked before it is used.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <run_model/error.h>

namespace run_model {

// Whether `packed` deflated bytes can hold `bytes`: deflate packs no better than 1032 to 1 (zlib's
// technical notes). To be asked before memory is taken for what a file claims.
constexpr bool can_inflate_to(std::size_t packed, std::uint64_t bytes) {
  return bytes / 1032 <= packed;
}

// What a reader stumbled over, for the sentence about it.
struct ByteFault {
  std::string_view source;   // the file's name, as the reader was given it
  std::uint64_t offset = 0;  // in the source
  std::uint64_t end = 0;     // where the reader's bytes end in the source
  std::string problem;       // "the number of names takes 8 bytes, but only 3 are left"
  std::string hint;          // what to do; empty where the caller had nothing to say
  bool past_end = false;     // whether bytes were asked for that are not there
};

// Error(kFormat) "<source> is malformed at byte <offset>: <problem>; <hint>".
Error malformed_bytes(const ByteFault& fault);

// What a format lays down for all of its fields, and how its errors read.
struct ByteFormat {
  std::endian order = std::endian::little;
  std::size_t word_bytes = 8;  // of word(): 4 or 8
  Error (*error)(const ByteFault& fault) = malformed_bytes;
};

// A cheap view: copy it to read from another place. The bytes and the source's name must outlive
// it. Reads take `what`, the words for the field ("the number of tensors"), where the format's
// errors name fields. A read that fails throws the format's error and leaves the offset where it
// was.
class ByteReader {
 public:
  // `source` names the bytes in errors, as in "parameters file 'm.params'"; `base` is where they
  // start in that source, so that offsets in errors are those that a hex dump of the file shows.
  ByteReader(std::span<const std::byte> bytes, std::string_view source, ByteFormat format = {},
             std::uint64_t base = 0)
      : bytes_(bytes), source_(source), format_(format), base_(base) {}
  ByteReader(std::span<const std::uint8_t> bytes, std::string_view source, ByteFormat format = {},
             std::uint64_t base = 0)
      : ByteReader(std::as_bytes(bytes), source, format, base) {}

  std::span<const std::byte> all() const { return bytes_; }
  std::string_view source() const { return source_; }
  std::endian order() const { return format_.order; }
  std::size_t word_bytes() const { return format_.word_bytes; }

  // The place of the next byte among the bytes, and in the source.
  std::uint64_t position() const { return position_; }
  std::uint64_t offset() const { return base_ + position_; }
  std::size_t remaining() const {
    return position_ < bytes_.size() ? bytes_.size() - static_cast<std::size_t>(position_) : 0;
  }
  bool at_end() const { return remaining() == 0; }

  // This reader at another position, which may be past the end: reading there fails.
  ByteReader at(std::uint64_t position) const {
    ByteReader other = *this;
    other.position_ = position;
    return other;
  }
  void seek(std::uint64_t position) { position_ = position; }
  // A reader of `length` bytes from `position` on, with the same source, format and offsets.
  ByteReader part(std::uint64_t position, std::uint64_t length, std::string_view what = {}) const;

  bool contains(std::uint64_t position, std::uint64_t length) const {
    return position <= bytes_.size() && length <= bytes_.size() - position;
  }

  // An unsigned number of `size` bytes, 1 to 8, at a position.
  std::uint64_t number(std::uint64_t position, std::size_t size, std::string_view what = {}) const {
    check(position, size, what);
    return load(static_cast<std::size_t>(position), size);
  }
  // The same, or nothing where the bytes do not hold it.
  std::optional<std::uint64_t> find_number(std::uint64_t position, std::size_t size) const {
    if (!contains(position, size)) return std::nullopt;
    return load(static_cast<std::size_t>(position), size);
  }
  std::span<const std::byte> bytes_at(std::uint64_t position, std::uint64_t length,
                                      std::string_view what = {}) const {
    check(position, length, what);
    return bytes_.subspan(static_cast<std::size_t>(position), static_cast<std::size_t>(length));
  }

  // The next number.
  std::uint8_t u8(std::string_view what = {}) { return next<std::uint8_t>(what); }
  std::uint16_t u16(std::string_view what = {}) { return next<std::uint16_t>(what); }
  std::uint32_t u32(std::string_view what = {}) { return next<std::uint32_t>(what); }
  std::uint64_t u64(std::string_view what = {}) { return next<std::uint64_t>(what); }
  std::int32_t i32(std::string_view what = {}) { return next<std::int32_t>(what); }
  std::int64_t i64(std::string_view what = {}) { return next<std::int64_t>(what); }
  // As wide as the format's words are: an address, offset or size of an ELF file.
  std::uint64_t word(std::string_view what = {}) { return take(format_.word_bytes, what); }
  // A number of any length in groups of 7 bits (unsigned LEB128, DWARF 5, 7.6), up to 64 bits.
  std::uint64_t uleb128(std::string_view what = {});

  // The next `count` bytes, not copied; as octets for code that reckons with them.
  std::span<const std::byte> bytes(std::uint64_t count, std::string_view what = {}) {
    const std::span<const std::byte> view = bytes_at(position_, count, what);
    position_ += count;
    return view;
  }
  std::span<const std::uint8_t> octets(std::uint64_t count, std::string_view what = {}) {
    const std::span<const std::byte> view = bytes(count, what);
    return {reinterpret_cast<const std::uint8_t*>(view.data()), view.size()};
  }
  void skip(std::uint64_t count, std::string_view what = {}) { bytes(count, what); }

  // A 64-bit count of items that take at least `item_bytes` each: refused when it is above `limit`
  // or when the rest of the bytes cannot hold that many, so it is safe to allocate for.
  std::size_t count(std::uint64_t limit, std::size_t item_bytes, std::string_view what);

  // A 64-bit length and that many bytes: how dmlc streams, and so TVM's files, write a string.
  std::string string(std::uint64_t max_length, std::string_view what);

  // The text up to the next zero byte, which is read too.
  std::string_view zero_terminated(std::string_view what = {});

  // Throws the format's error for a problem at the present offset.
  [[noreturn]] void fail(std::string problem, std::string hint = "") const;

 private:
  [[noreturn]] void fail_past_end(std::uint64_t position, std::uint64_t length,
                                  std::string_view what) const;

  void check(std::uint64_t position, std::uint64_t length, std::string_view what) const {
    if (!contains(position, length)) fail_past_end(position, length, what);
  }

  std::uint64_t load(std::size_t position, std::size_t size) const {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t at = format_.order == std::endian::little ? size - 1 - i : i;
      value = value << 8 | std::to_integer<std::uint64_t>(bytes_[position + at]);
    }
    return value;
  }

  std::uint64_t take(std::size_t size, std::string_view what) {
    const std::uint64_t value = number(position_, size, what);
    position_ += size;
    return value;
  }

  template <typename T>
  T next(std::string_view what) {
    return static_cast<T>(take(sizeof(T), what));
  }

  std::span<const std::byte> bytes_;
  std::string_view source_;
  ByteFormat format_;
  std::uint64_t base_ = 0;
  std::uint64_t position_ = 0;
};

}  // namespace run_model
