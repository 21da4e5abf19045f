// Members of a zip file that is in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

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
  std::uint64_t little_endian(std::uint64_t offset, int bytes) const;
  std::uint64_t find_end_record() const;
  Directory find_directory() const;
  std::uint64_t read_entry(std::uint64_t offset, std::uint64_t end);
  void read_zip64_extra(ZipEntry& entry, std::uint64_t offset, std::uint64_t end) const;
  void check_totals() const;
  std::span<const std::byte> packed(const ZipEntry& entry) const;

  std::span<const std::byte> bytes_;
  std::string name_;
  std::vector<ZipEntry> entries_;
};

}  // namespace run_model
