// Reads the fields of ELF structures of either class and byte order from untrusted bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <run_model/error.h>

namespace run_model {

class ElfReader {
 public:
  ElfReader(std::span<const std::byte> bytes, std::string source, int bits, bool little_endian)
      : bytes_(bytes), source_(std::move(source)), bits_(bits), little_endian_(little_endian) {}

  int bits() const { return bits_; }
  bool little_endian() const { return little_endian_; }
  std::size_t address_bytes() const { return static_cast<std::size_t>(bits_) / 8; }
  std::span<const std::byte> bytes() const { return bytes_; }

  bool contains(std::uint64_t offset, std::uint64_t length) const {
    return offset <= bytes_.size() && length <= bytes_.size() - offset;
  }

  // An unsigned number of 1, 2, 4 or 8 bytes. Throws Error(kFormat) when it is not within the file.
  std::uint64_t number(std::uint64_t offset, std::size_t size) const {
    if (!contains(offset, size)) {
      fail("it ends before byte " + std::to_string(offset) + ", where its headers point",
           "the file is probably truncated; copy or export it again");
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t at = little_endian_ ? size - 1 - i : i;
      value = value << 8 | static_cast<std::uint64_t>(bytes_[offset + at]);
    }
    return value;
  }

  // Throws Error(kFormat) "<source> is a damaged ELF file: <problem>".
  [[noreturn]] void fail(const std::string& problem, const std::string& hint = "") const {
    throw Error(ErrorKind::kFormat, source_ + " is a damaged ELF file: " + problem,
                hint.empty() ? "copy or export it again" : hint);
  }

 private:
  std::span<const std::byte> bytes_;
  std::string source_;
  int bits_;
  bool little_endian_;
};

// Reads the fields of one structure in their order.
class ElfCursor {
 public:
  ElfCursor(const ElfReader& reader, std::uint64_t offset) : reader_(reader), offset_(offset) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(next(1)); }
  std::uint16_t u16() { return static_cast<std::uint16_t>(next(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(next(4)); }
  std::uint64_t u64() { return next(8); }
  // An address, offset or size: as wide as the file's class says.
  std::uint64_t word() { return next(reader_.address_bytes()); }

 private:
  std::uint64_t next(std::size_t size) {
    const std::uint64_t value = reader_.number(offset_, size);
    offset_ += size;
    return value;
  }

  const ElfReader& reader_;
  std::uint64_t offset_;
};

}  // namespace run_model
