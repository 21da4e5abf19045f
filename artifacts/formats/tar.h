// Files inside a tar archive that is in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace run_model {

struct TarEntry {
  std::string name;  // without a leading "./"
  std::span<const std::byte> bytes;
};

// Reads POSIX (ustar, pax) and GNU archives: what Python's tarfile, GNU tar and bsdtar write.
// Folders are passed over; everything but folders and files is refused, as is every name that leads
// outside of the archive or stands for two files.
//
// Formats: POSIX.1-2017 pax, "pax Interchange Format" and "ustar Interchange Format"; GNU tar
// manual, "Basic Tar Format".
class TarReader {
 public:
  // `bytes` must outlive the reader; `name` stands for the archive in messages. Throws
  // Error(kFormat) when the archive is damaged, cut off, or holds what is refused.
  TarReader(std::span<const std::byte> bytes, std::string name);

  const std::vector<TarEntry>& entries() const { return entries_; }

  // Null where there is no file of that name.
  const TarEntry* find(std::string_view name) const;

 private:
  // What extended headers say about the file that follows them.
  struct Overrides {
    std::optional<std::string> name;
    std::optional<std::uint64_t> bytes;
  };

  [[noreturn]] void fail(const std::string& why) const;
  void read_all();
  void read_member(std::span<const std::byte> block);
  void read_pax_records(std::span<const std::byte> records);
  void add_file(const std::string& name, std::span<const std::byte> bytes);
  void check_end() const;
  std::span<const std::byte> take(std::uint64_t bytes, const std::string& what);

  std::span<const std::byte> bytes_;
  std::string name_;
  std::size_t position_ = 0;
  Overrides next_;
  std::size_t members_ = 0;
  std::vector<TarEntry> entries_;
};

}  // namespace run_model
