// Writes zip files with stored (uncompressed) members.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace run_model {

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
