// Source of the format: Truevision TGA File Format Specification 2.0, fields 1, 2, 4 and 5.6.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "preprocess/decoding/decoders.h"
#include "preprocess/image_operations.h"

namespace run_model {
namespace {

constexpr std::size_t kTgaHeaderBytes = 18;
constexpr std::size_t kTgaNoteBytesAt = 0;
constexpr std::size_t kTgaHasPaletteAt = 1;
constexpr std::size_t kTgaFirstEntryAt = 3;
constexpr std::size_t kTgaEntriesAt = 5;
constexpr std::size_t kTgaEntryBitsAt = 7;
constexpr std::size_t kTgaMostEntries = 0xFFFF;
constexpr std::size_t kTgaDescriptorAt = 17;
constexpr int kTgaRightToLeft = 0x10;
constexpr int kMirrored = 2;  // EXIF's number for it

// The same TGA picture with a palette that has an entry for every index, which is black where the
// file has none: stb_image would take the first.
std::vector<std::uint8_t> with_whole_palette(Bytes file) {
  std::vector<std::uint8_t> whole(file.begin(), file.end());
  const std::size_t entries = file[kTgaEntriesAt] | std::size_t{file[kTgaEntriesAt + 1]} << 8;
  const std::size_t entry_bytes = (std::size_t{file[kTgaEntryBitsAt]} + 7) / 8;
  const std::size_t end = kTgaHeaderBytes + file[kTgaNoteBytesAt] + entries * entry_bytes;
  if (entries > 0 && end <= file.size()) {
    whole[kTgaEntriesAt] = whole[kTgaEntriesAt + 1] = 0xFF;
    whole.insert(whole.begin() + static_cast<std::ptrdiff_t>(end),
                 (kTgaMostEntries - entries) * entry_bytes, 0);
  }
  return whole;
}

}  // namespace

RawPicture decode_tga(Bytes file, const std::string& what) {
  const Bytes header = picture_reader(file, what).octets(kTgaHeaderBytes);
  const bool has_palette = header[kTgaHasPaletteAt] == 1;
  if (has_palette && (header[kTgaFirstEntryAt] != 0 || header[kTgaFirstEntryAt + 1] != 0)) {
    throw Error(ErrorKind::kImage,
                what + ": the palette of the TGA picture does not begin at entry 0",
                "convert the picture to PNG");
  }
  RawPicture picture =
      has_palette ? decode_with_stb(with_whole_palette(file), what) : decode_with_stb(file, what);
  if ((header[kTgaDescriptorAt] & kTgaRightToLeft) != 0) {
    picture.image = apply_orientation(std::move(picture.image), kMirrored);
  }
  return picture;
}

}  // namespace run_model
