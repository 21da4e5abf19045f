#include "artifacts/tar_header.h"

#include <algorithm>

#include "base/text.h"

namespace run_model {
namespace {

struct Field {
  std::size_t offset;
  std::size_t length;
};

// Offsets of POSIX.1-2017 pax, table "ustar Header Block".
constexpr Field kName{0, 100};
constexpr Field kSize{124, 12};
constexpr Field kChecksum{148, 8};
constexpr std::size_t kType = 156;
constexpr Field kMagicField{257, 8};
constexpr Field kPrefix{345, 155};

// "ustar" and a version in POSIX archives, two blanks and a zero instead in those of GNU tar.
constexpr std::string_view kPosixMagic("ustar\0"
                                       "00",
                                       8);
constexpr std::string_view kGnuMagic("ustar  \0", 8);

std::string_view field(std::span<const std::byte> block, Field where) {
  return as_text(block).substr(where.offset, where.length);
}

std::string_view text(std::span<const std::byte> block, Field where) {
  const std::string_view all = field(block, where);
  return all.substr(0, all.find('\0'));
}

// Octal digits between blanks and zeros, or, with the highest bit set, a big-endian number.
std::optional<std::uint64_t> number(std::string_view digits) {
  if (!digits.empty() && (static_cast<unsigned char>(digits[0]) & 0x80) != 0) {
    std::uint64_t value = static_cast<unsigned char>(digits[0]) & 0x7F;
    for (const char c : digits.substr(1)) {
      if (value >> 56 != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(c);
    }
    return value;
  }
  const std::size_t first = digits.find_first_not_of(' ');
  const std::size_t end =
      std::min(digits.find_first_of(std::string_view(" \0", 2), first == digits.npos ? 0 : first),
               digits.size());
  if (first == digits.npos || first == end) return std::nullopt;
  if (digits.find_first_not_of(std::string_view(" \0", 2), end) != digits.npos) return std::nullopt;
  std::uint64_t value = 0;
  for (const char c : digits.substr(first, end - first)) {
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

// The sum of all bytes, those of the checksum itself taken for blanks.
std::uint64_t sum(std::span<const std::byte> block) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.length;
    total += own ? ' ' : std::to_integer<std::uint64_t>(block[i]);
  }
  return total;
}

}  // namespace

bool is_zero_block(std::span<const std::byte> block) {
  return std::all_of(block.begin(), block.end(), [](std::byte b) { return b == std::byte{0}; });
}

std::optional<TarHeader> parse_tar_header(std::span<const std::byte> block, std::string& problem) {
  if (number(field(block, kChecksum)) != sum(block)) {
    problem = "its checksum is wrong";
    return std::nullopt;
  }
  const std::string_view magic = field(block, kMagicField);
  if (magic != kPosixMagic && magic != kGnuMagic) {
    problem = "it is neither POSIX's nor GNU's";
    return std::nullopt;
  }
  const auto bytes = number(field(block, kSize));
  if (!bytes) {
    problem = "its size is no number";
    return std::nullopt;
  }
  TarHeader header;
  header.bytes = *bytes;
  header.type = static_cast<char>(block[kType]);
  header.name = text(block, kName);
  // GNU tar keeps times where POSIX has the prefix.
  const std::string_view prefix = magic == kPosixMagic ? text(block, kPrefix) : "";
  if (!prefix.empty()) header.name = std::string(prefix) + "/" + header.name;
  return header;
}

std::string_view tar_type_name(char type) {
  switch (type) {
    case '1':
      return "a hard link";
    case '2':
    case 'K':
      return "a symbolic link";
    case '3':
    case '4':
      return "a device";
    case '6':
      return "a pipe";
    case 'S':
      return "a sparse file";
    default:
      return "neither a file nor a folder";
  }
}

}  // namespace run_model
