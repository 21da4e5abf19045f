// Zip files: members of one that is in memory, and writing one with stored members.
// Source: PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 and 4.5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "base/byte_reader.h"

namespace run_model {

struct ZipEntry {
  std::string name;
  std::uint16_t method = 0;
  std::uint32_t crc32 = 0;
  std::uint64_t compressed_bytes = 0;
  std::uint64_t bytes = 0;
  std::uint64_t header_offset = 0;
};

// Reads single-volume zip and zip64 files with stored and deflated members.
class ZipReader {
 public:
  // `bytes` must outlive the reader; `name` stands for the file in messages. Throws Error(kFormat)
  // when the directory is damaged, names a member twice or claims more than the file can hold.
  ZipReader(std::span<const std::byte> bytes, std::string name);
  ZipReader(const ZipReader&) = delete;
  ZipReader& operator=(const ZipReader&) = delete;

  const std::vector<ZipEntry>& entries() const { return entries_; }

  // The unpacked member. Throws Error(kFormat) when it is damaged (its CRC-32 is checked).
  std::vector<std::byte> read(const ZipEntry& entry) const;

 private:
  struct Directory {
    std::uint64_t entries = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };

  [[noreturn]] void fail(const std::string& why) const;
  std::uint64_t field(std::uint64_t offset, std::size_t bytes) const;
  std::uint64_t find_end_record() const;
  Directory find_directory() const;
  std::uint64_t read_entry(std::uint64_t offset, std::uint64_t end);
  void read_zip64_extra(ZipEntry& entry, std::uint64_t offset, std::uint64_t end) const;
  void check_totals() const;
  std::span<const std::byte> packed(const ZipEntry& entry) const;

  std::string name_;
  ByteReader reader_;
  std::vector<ZipEntry> entries_;
};

// Writes members as they are, without compression.
class ZipWriter {
 public:
  // A member made of the pieces one after another; they are kept in memory until write(). Throws
  // Error(kMismatch) when the archive would pass 4 GiB, the limit of plain zip.
  void add(const std::string& name, std::initializer_list<std::span<const std::byte>> pieces);

  // Throws Error(kFile). Writes atomically.
  void write(const std::filesystem::path& path) const;

 private:
  std::string members_;    // local headers and data
  std::string directory_;  // central headers
  std::uint16_t count_ = 0;
};

}  // namespace run_model
