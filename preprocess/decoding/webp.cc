// Source of the container: RFC 9649 (WebP Image Format), section 2. What is in it is decoded by the
// machine's own libwebp, by the functions that its decode.h has had since version 0.1.3.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include <run_model/error.h>
#include "base/installed_library.h"
#include "preprocess/decoding/decoders.h"
#include "preprocess/decoding/exif.h"

namespace run_model {
namespace {

constexpr std::uint8_t kAnimated = 0x02;
constexpr std::uint8_t kHasAlpha = 0x10;
constexpr std::size_t kLosslessHeader = 5;  // its last byte has the flag of alpha
constexpr std::uint8_t kLosslessAlpha = 0x10;

struct LibWebp {
  int (*get_info)(const std::uint8_t* data, std::size_t bytes, int* width, int* height) = nullptr;
  // Rows of `stride` bytes, the last one of `room`; null where the data is damaged.
  std::uint8_t* (*decode_rgb)(const std::uint8_t* data, std::size_t bytes, std::uint8_t* to,
                              std::size_t room, int stride) = nullptr;
  std::string problem;
};

LibWebp open_webp(const char* file) {
  LibWebp api;
  InstalledLibrary library(file, "libwebp 0.1.3");
  library.find(api.get_info, "WebPGetInfo");
  library.find(api.decode_rgb, "WebPDecodeRGBInto");
  api.problem = library.problem();
  return api;
}

const LibWebp& lib_webp() {
  static const LibWebp found = [] {
    LibWebp newer = open_webp("libwebp.so.7");
    LibWebp older = newer.problem.empty() ? newer : open_webp("libwebp.so.6");
    return older.problem.empty() ? older : newer;
  }();
  return found;
}

struct RiffChunk {
  std::string_view type;
  Bytes body;
};

RiffChunk next_chunk(ByteReader& reader) {
  const Bytes type = reader.octets(4);
  const std::uint32_t length = reader.u32();
  const RiffChunk chunk{{reinterpret_cast<const char*>(type.data()), type.size()},
                        reader.octets(length)};
  if (length % 2 != 0 && !reader.at_end()) {
    reader.skip(1);
  }
  return chunk;
}

struct WebpInfo {
  int width = 0;  // of the whole picture; 0 where only its one frame says it
  int height = 0;
  bool has_alpha = false;
  bool is_animated = false;
  Bytes frame;  // VP8 or VP8L: the only one, or the first
  int x = 0;    // where it lies
  int y = 0;
  Bytes exif;
  Bytes xmp;
};

// Numbers of 24 bits, as sizes less one are stored.
int next_24_bits(ByteReader& reader) {
  const Bytes bytes = reader.octets(3);
  return bytes[0] | bytes[1] << 8 | bytes[2] << 16;
}

void read_chunks(ByteReader reader, bool in_frame, const std::string& what, WebpInfo& info) {
  while (!reader.at_end()) {
    const RiffChunk chunk = next_chunk(reader);
    if (chunk.type == "EXIF") {
      info.exif = behind_mark(chunk.body, kExifMark).value_or(chunk.body);
    } else if (chunk.type == "XMP ") {
      info.xmp = chunk.body;
    } else if (!info.frame.empty()) {
      continue;
    } else if (chunk.type == "VP8X" && !in_frame) {
      ByteReader fields = picture_reader(chunk.body, what, std::endian::little);
      const std::uint8_t flags = fields.u8();
      info.is_animated = (flags & kAnimated) != 0;
      info.has_alpha = (flags & kHasAlpha) != 0;
      fields.skip(3);
      info.width = next_24_bits(fields) + 1;
      info.height = next_24_bits(fields) + 1;
    } else if (chunk.type == "VP8 " || chunk.type == "VP8L") {
      info.frame = chunk.body;
      const bool lossless = chunk.type == "VP8L" && chunk.body.size() >= kLosslessHeader;
      info.has_alpha |= lossless && (chunk.body[kLosslessHeader - 1] & kLosslessAlpha) != 0;
    } else if (chunk.type == "ANMF" && !in_frame) {
      ByteReader fields = picture_reader(chunk.body, what, std::endian::little);
      info.x = 2 * next_24_bits(fields);
      info.y = 2 * next_24_bits(fields);
      fields.skip(10);  // its size, which its data says too, how long it is shown, and flags
      read_chunks(fields.part(fields.position(), fields.remaining()), true, what, info);
    }
  }
}

WebpInfo read_webp(Bytes file, const std::string& what) {
  ByteReader reader = picture_reader(file, what, std::endian::little);
  reader.skip(4);  // RIFF
  const std::uint32_t length = reader.u32();
  WebpInfo info;
  if (length < 4) {
    damaged_picture(what, "WebP", "it says that it has " + std::to_string(length) + " bytes");
  }
  read_chunks(reader.part(reader.position() + 4, length - 4), false, what, info);
  if (info.frame.empty()) {
    damaged_picture(what, "WebP", "it has no picture data");
  }
  return info;
}

}  // namespace

RawPicture decode_webp(Bytes file, const std::string& what) {
  const LibWebp& library = lib_webp();
  if (!library.problem.empty()) {
    throw Error(ErrorKind::kImage, what + ": this is a WebP picture, and " + library.problem,
                "install it (Debian: libwebp7), or save the picture as PNG or JPEG");
  }
  const WebpInfo info = read_webp(file, what);
  int width = 0;
  int height = 0;
  if (library.get_info(info.frame.data(), info.frame.size(), &width, &height) == 0) {
    damaged_picture(what, "WebP", "its picture data has no header");
  }
  const int whole_width = info.width == 0 ? width : info.width;
  const int whole_height = info.height == 0 ? height : info.height;
  check_image_size(what, whole_width, whole_height);
  const bool fits = info.is_animated
                        ? info.x <= whole_width - width && info.y <= whole_height - height
                        : width == whole_width && height == whole_height;
  if (!fits) {
    damaged_picture(what, "WebP",
                    "a frame of " + std::to_string(width) + " x " + std::to_string(height) +
                        " pixels does not fit a picture of " + std::to_string(whole_width) + " x " +
                        std::to_string(whole_height));
  }
  RawPicture picture;
  picture.image = Image(whole_width, whole_height);
  if (info.is_animated) {
    std::fill_n(picture.image.data(), picture.image.byte_count(), std::uint8_t{0});
  }
  picture.channels = info.has_alpha ? 4 : 3;
  picture.orientation = orientation_of(info.exif, info.xmp);
  std::uint8_t* const corner = picture.image.row(info.y) + info.x * kImageChannels;
  const std::uint8_t* const end = picture.image.data() + picture.image.byte_count();
  if (library.decode_rgb(info.frame.data(), info.frame.size(), corner,
                         static_cast<std::size_t>(end - corner),
                         whole_width * kImageChannels) == nullptr) {
    damaged_picture(what, "WebP", "its picture data cannot be decoded");
  }
  return picture;
}

}  // namespace run_model
