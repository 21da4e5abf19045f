// What stb_image decodes of other formats than JPEG.
#define STBI_NO_JPEG
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "preprocess/image_operations.h"
#include "preprocess/stb_checked.h"

namespace run_model {

RawPicture decode_with_stb(Bytes file, const std::string& what) {
  return decode_checked(file, what);
}

bool inflate_with_stb(Bytes stream, std::span<std::uint8_t> to) {
  constexpr std::size_t kLargest = std::numeric_limits<int>::max();
  if (stream.size() > kLargest || to.size() > kLargest) {
    return false;
  }
  try {
    const int size = stbi_zlib_decode_buffer(
        reinterpret_cast<char*>(to.data()), static_cast<int>(to.size()),
        reinterpret_cast<const char*>(stream.data()), static_cast<int>(stream.size()));
    return size == static_cast<int>(to.size());
  } catch (const StbAssertion&) {
    return false;
  }
}

namespace {

// Source: Adobe Photoshop File Formats Specification, "File header section", "Image data section".
constexpr std::size_t kPsdChannelsAt = 12;
constexpr std::uint32_t kPsdColorChannels = 3;
constexpr std::uint32_t kPsdRunLengths = 1;

// Source: Truevision TGA File Format Specification 2.0, fields 2, 4.1 and 5.6.
constexpr std::size_t kTgaHeaderBytes = 18;
constexpr std::size_t kTgaHasPaletteAt = 1;
constexpr std::size_t kTgaFirstEntryAt = 3;
constexpr std::size_t kTgaDescriptorAt = 17;
constexpr int kTgaRightToLeft = 0x10;
constexpr int kMirrored = 2;  // EXIF's number for it

}  // namespace

RawPicture decode_psd(Bytes file, const std::string& what) {
  ByteReader reader = picture_reader(file, what);
  reader.skip(kPsdChannelsAt);
  const std::uint32_t channels = reader.u16();
  const std::uint64_t height = reader.u32();
  reader.skip(4 + 2 + 2);  // width, bits, colour mode
  for (int section = 0; section < 3; ++section) {
    reader.skip(reader.u32());  // colour mode data, resources, layers
  }
  const std::uint32_t compression = reader.u16();
  if (channels <= kPsdColorChannels) {
    return decode_with_stb(file, what);
  }

  std::vector<std::uint8_t> reduced(file.begin(), file.end());
  reduced[kPsdChannelsAt] = 0;
  reduced[kPsdChannelsAt + 1] = kPsdColorChannels;
  if (compression == kPsdRunLengths) {
    // Before the channels lies a table of the bytes of every row of every channel.
    const auto rows_take = [&](std::uint32_t count) {
      const std::uint64_t bytes = count * height * 2;
      return reader.octets(bytes).size();
    };
    rows_take(kPsdColorChannels);
    const auto surplus = reduced.begin() + static_cast<std::ptrdiff_t>(reader.position());
    reduced.erase(surplus,
                  surplus + static_cast<std::ptrdiff_t>(rows_take(channels - kPsdColorChannels)));
  }
  RawPicture picture = decode_with_stb(reduced, what);
  picture.channels = kPsdColorChannels + 1;
  return picture;
}

RawPicture decode_tga(Bytes file, const std::string& what) {
  const Bytes header = picture_reader(file, what).octets(kTgaHeaderBytes);
  if (header[kTgaHasPaletteAt] == 1 &&
      (header[kTgaFirstEntryAt] != 0 || header[kTgaFirstEntryAt + 1] != 0)) {
    throw Error(ErrorKind::kImage,
                what + ": the palette of the TGA picture does not begin at entry 0",
                "convert the picture to PNG");
  }
  RawPicture picture = decode_with_stb(file, what);
  if ((header[kTgaDescriptorAt] & kTgaRightToLeft) != 0) {
    picture.image = apply_orientation(std::move(picture.image), kMirrored);
  }
  return picture;
}

}  // namespace run_model
