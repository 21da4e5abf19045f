#include "preprocess/decoding/exif.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string_view>

#include "base/byte_reader.h"

namespace run_model {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint64_t kEntryBytes = 12;  // tag, type, number of values, the value or its place

// Bytes of one value of a TIFF field type that may hold the orientation; 0 for other types, among
// them BYTE, whose values are no numbers for Pillow.
std::size_t integer_size(std::uint64_t type) {
  switch (type) {
    case 6:
      return 1;  // SBYTE
    case 3:      // SHORT, the type that the standard asks for
    case 8:      // SSHORT
      return 2;
    case 4:   // LONG
    case 9:   // SLONG
    case 13:  // IFD
      return 4;
    default:
      return 0;
  }
}

// The value of the field, as 1..8 or kOrientationNormal; nothing where there is none.
std::optional<int> in_exif(std::span<const std::uint8_t> bytes) {
  if (bytes.size() < 8 || (bytes[0] != 'I' && bytes[0] != 'M') || bytes[0] != bytes[1]) {
    return std::nullopt;
  }
  // Little- or big-endian numbers at offsets; nothing where the offset leaves the block.
  const ByteReader tiff(bytes, "EXIF", {bytes[0] == 'I' ? std::endian::little : std::endian::big});
  if (tiff.find_number(2, 2) != 42U) {
    return std::nullopt;
  }
  const std::uint64_t directory = tiff.find_number(4, 4).value_or(0);
  const std::uint64_t entries = tiff.find_number(directory, 2).value_or(0);
  for (std::uint64_t i = 0; i < entries; ++i) {
    const std::uint64_t entry = directory + 2 + kEntryBytes * i;
    if (!tiff.contains(entry, kEntryBytes)) {
      break;
    }
    if (tiff.find_number(entry, 2) != kOrientationTag) {
      continue;
    }
    // Of several values Pillow takes the first. What does not fit into the entry lies elsewhere.
    const std::size_t size = integer_size(tiff.find_number(entry + 2, 2).value_or(0));
    const std::uint64_t length = size * tiff.find_number(entry + 4, 4).value_or(0);
    const std::uint64_t at = length <= 4 ? entry + 8 : tiff.find_number(entry + 8, 4).value_or(0);
    const std::uint64_t value =
        tiff.contains(at, length) ? tiff.find_number(at, size).value_or(0) : 0;
    const bool valid = length > 0 && value >= 1 && value <= 8;
    return valid ? static_cast<int>(value) : kOrientationNormal;
  }
  return std::nullopt;
}

// An attribute, tiff:Orientation="6", or an element, <tiff:Orientation>6<.
int in_xmp(std::string_view packet) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (std::size_t at = packet.find(kName); at != packet.npos; at = packet.find(kName, at + 1)) {
    std::string_view rest = packet.substr(at + kName.size());
    if (!rest.starts_with("=\"") && !rest.starts_with(">")) {
      continue;
    }
    rest.remove_prefix(rest[0] == '=' ? 2 : 1);
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') {
      const int value = rest[0] - '0';
      return value >= 1 && value <= 8 ? value : kOrientationNormal;
    }
  }
  return kOrientationNormal;
}

}  // namespace

std::optional<std::span<const std::uint8_t>> behind_mark(std::span<const std::uint8_t> bytes,
                                                         std::string_view mark) {
  if (bytes.size() < mark.size() || !std::equal(mark.begin(), mark.end(), bytes.begin())) {
    return std::nullopt;
  }
  return bytes.subspan(mark.size());
}

int orientation_of(std::span<const std::uint8_t> exif, std::span<const std::uint8_t> xmp) {
  return in_exif(exif).value_or(in_xmp({reinterpret_cast<const char*>(xmp.data()), xmp.size()}));
}

}  // namespace run_model
