// Tar archives of whatever content a test wants, also such as no program writes.
#pragma once

#include <cstdio>
#include <string>

namespace run_model {

class TarFile {
 public:
  // A member as POSIX has it; `size` is what the header says, if not the content's own size.
  TarFile& add(const std::string& name, const std::string& content, char type = '0',
               const std::string& size = "") {
    std::string header(512, '\0');
    header.replace(0, name.size(), name);
    char digits[12];
    std::snprintf(digits, sizeof(digits), "%011lo", static_cast<unsigned long>(content.size()));
    const std::string field = size.empty() ? digits : size;
    header.replace(124, field.size(), field);
    header[156] = type;
    header.replace(257, 8,
                   std::string("ustar\0"
                               "00",
                               8));
    add_checksum(header);
    bytes_ += header + content;
    bytes_.resize((bytes_.size() + 511) / 512 * 512, '\0');
    return *this;
  }

  // With the two blocks that end an archive.
  std::string bytes() const { return bytes_ + std::string(1024, '\0'); }

  static void add_checksum(std::string& header) {
    header.replace(148, 8, 8, ' ');
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    char digits[8];
    std::snprintf(digits, sizeof(digits), "%06o", sum);
    header.replace(148, 7, std::string(digits, 7));
  }

 private:
  std::string bytes_;
};

}  // namespace run_model
