// Source: PNG specification, second edition (ISO/IEC 15948), clauses 5 (chunks) and 9 (filters).
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/byte_reader.h"
#include "preprocess/decoding/decoders.h"
#include "preprocess/decoding/exif.h"
#include "preprocess/decoding/png_text.h"

namespace run_model {
namespace {

enum PngColor : int { kPngGray = 0, kPngRgb = 2, kPngPalette = 3, kPngGrayAlpha = 4, kPngRgba = 6 };

// What the chunks say.
struct PngInfo {
  int width = 0;
  int height = 0;
  int depth = 0;  // bits a sample
  int color = 0;  // PngColor, or a number that means none
  bool interlaced = false;
  int orientation = 1;
  std::vector<Bytes> data;  // the bodies of the IDAT chunks
};

constexpr std::size_t kSignatureBytes = 8;
constexpr std::size_t kHeaderBytes = 13;
constexpr std::uint32_t kLargestChunk = 0x7FFFFFFF;

struct Chunk {
  std::string type;
  Bytes body;
};

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

Chunk read_chunk(ByteReader& reader, const std::string& what) {
  const std::string place = " at byte " + std::to_string(reader.position());
  const std::uint32_t length = reader.u32();
  const Bytes type = reader.octets(4);
  Chunk chunk{std::string(type.begin(), type.end()), {}};
  if (!std::all_of(chunk.type.begin(), chunk.type.end(), is_letter) || length > kLargestChunk) {
    damaged_picture(what, "PNG", "there is no chunk" + place);
  }
  chunk.body = reader.octets(length);
  // The checksum covers the type and the body, which lie together; both fit zlib's 32-bit length.
  const auto checked = static_cast<uInt>(type.size() + length);
  if (crc32(0, type.data(), checked) != reader.u32()) {
    damaged_picture(what, "PNG", "the checksum of chunk " + chunk.type + place + " is wrong");
  }
  return chunk;
}

// Whether the format has such samples: what it does not have stb_image shows as anything.
bool known_samples(const PngInfo& info) {
  const bool whole = info.depth == 8 || info.depth == 16;
  const bool part = info.depth == 1 || info.depth == 2 || info.depth == 4;
  switch (info.color) {
    case kPngGray:
      return whole || part;
    case kPngPalette:
      return info.depth == 8 || part;
    case kPngRgb:
    case kPngGrayAlpha:
    case kPngRgba:
      return whole;
    default:
      return false;
  }
}

PngInfo read_png_header(const Chunk& header, const std::string& what) {
  if (header.type == "CgBI") {
    throw Error(ErrorKind::kImage,
                what + ": this is a PNG picture in Apple's own form for iPhones (CgBI)",
                "convert it to a common PNG");
  }
  if (header.type != "IHDR" || header.body.size() != kHeaderBytes) {
    damaged_picture(what, "PNG", "it begins with chunk " + header.type + " instead of IHDR");
  }
  ByteReader fields = picture_reader(header.body, what);
  const std::uint32_t width = fields.u32();
  const std::uint32_t height = fields.u32();
  check_image_size(what, width, height);

  PngInfo info;
  info.width = static_cast<int>(width);
  info.height = static_cast<int>(height);
  info.depth = fields.u8();
  info.color = fields.u8();
  // There is one method each of compression and filtering, and one of interlacing.
  const bool known_methods = fields.u8() == 0 && fields.u8() == 0;
  const int interlacing = fields.u8();
  info.interlaced = interlacing != 0;
  if (!known_samples(info) || !known_methods || interlacing > 1) {
    damaged_picture(what, "PNG",
                    "its header has numbers that the format does not have (" +
                        std::to_string(info.depth) + " bits a sample, colour type " +
                        std::to_string(info.color) + ")");
  }
  return info;
}

// Walks the chunks from IHDR to IEND and compares every CRC-32, which stb_image leaves out: it
// shows a damaged picture as if it were sound. Bytes after IEND are not looked at.
PngInfo check_png(Bytes file, const std::string& what) {
  ByteReader reader = picture_reader(file, what);
  reader.skip(kSignatureBytes);
  PngInfo info = read_png_header(read_chunk(reader, what), what);
  Bytes exif;
  std::vector<std::uint8_t> exif_text;
  std::vector<std::uint8_t> xmp;
  for (;;) {
    const Chunk chunk = read_chunk(reader, what);
    if (chunk.type == "IHDR") {
      damaged_picture(what, "PNG", "it has two IHDR chunks");
    } else if (chunk.type == "IDAT") {
      info.data.push_back(chunk.body);
    } else if (chunk.type == "eXIf") {
      exif = chunk.body;
    } else if (chunk.type == "IEND") {
      break;
    } else if (auto found = exif_in_text(chunk.type, chunk.body); !found.empty()) {
      exif_text = std::move(found);
    } else if (found = xmp_in_text(chunk.type, chunk.body); !found.empty()) {
      xmp = std::move(found);
    }
  }
  info.orientation = orientation_of(exif.empty() ? Bytes(exif_text) : exif, xmp);
  if (info.data.empty()) {
    damaged_picture(what, "PNG", "it has no IDAT chunk");
  }
  return info;
}

std::uint8_t sum(int a, int b) { return static_cast<std::uint8_t>(a + b); }

void unfilter_up(Bytes filtered, const std::uint8_t* above, std::uint8_t* to) {
  for (std::size_t i = 0; i < filtered.size(); ++i) {
    to[i] = sum(filtered[i], above[i]);
  }
}

template <int kChannels>
void unfilter_sub(Bytes filtered, std::uint8_t* to) {
  int left[kChannels] = {};
  for (std::size_t i = 0; i < filtered.size(); i += kChannels) {
    for (std::size_t c = 0; c < kChannels; ++c) {
      left[c] = to[i + c] = sum(filtered[i + c], left[c]);
    }
  }
}

template <int kChannels>
void unfilter_average(Bytes filtered, const std::uint8_t* above, std::uint8_t* to) {
  int left[kChannels] = {};
  for (std::size_t i = 0; i < filtered.size(); i += kChannels) {
    for (std::size_t c = 0; c < kChannels; ++c) {
      left[c] = to[i + c] = sum(filtered[i + c], (left[c] + above[i + c]) / 2);
    }
  }
}

// The neighbour nearest to left + up - corner; of equally near ones left before up before corner.
// Conditional moves instead of branches, which photographs make unpredictable.
int paeth(int left, int up, int corner) {
  const int to_left = up - corner;
  const int to_up = left - corner;
  const int to_corner = std::abs(to_left + to_up);
  int nearest = left;
  int distance = std::abs(to_left);
  nearest = std::abs(to_up) < distance ? up : nearest;
  distance = std::abs(to_up) < distance ? std::abs(to_up) : distance;
  return to_corner < distance ? corner : nearest;
}

template <int kChannels>
void unfilter_paeth(Bytes filtered, const std::uint8_t* above, std::uint8_t* to) {
  // The channels do not depend on each other, so the steps of one pixel overlap.
  int left[kChannels] = {};
  int corner[kChannels] = {};
  for (std::size_t i = 0; i < filtered.size(); i += kChannels) {
    for (std::size_t c = 0; c < kChannels; ++c) {
      const int up = above[i + c];
      left[c] = to[i + c] = sum(filtered[i + c], paeth(left[c], up, corner[c]));
      corner[c] = up;
    }
  }
}

template <int kChannels>
bool unfilter(int filter, Bytes filtered, const std::uint8_t* above, std::uint8_t* to) {
  switch (filter) {
    case 0:
      std::memmove(to, filtered.data(), filtered.size());
      return true;
    case 1:
      unfilter_sub<kChannels>(filtered, to);
      return true;
    case 2:
      unfilter_up(filtered, above, to);
      return true;
    case 3:
      unfilter_average<kChannels>(filtered, above, to);
      return true;
    case 4:
      unfilter_paeth<kChannels>(filtered, above, to);
      return true;
    default:
      return false;
  }
}

// Restores one row of 8-bit samples, `channels` (1 to 4) of them a pixel, from its filtered bytes
// and the restored row above it (zeros above the first). `to` may be the filtered bytes themselves.
// False when `filter` is none of the five. Inlined into the loop over rows, GCC 12 makes code of it
// that takes a fifth longer.
[[gnu::noinline]] bool unfilter_png_row(int filter, int channels, Bytes filtered,
                                        const std::uint8_t* above, std::uint8_t* to) {
  switch (channels) {
    case 1:
      return unfilter<1>(filter, filtered, above, to);
    case 2:
      return unfilter<2>(filter, filtered, above, to);
    case 3:
      return unfilter<3>(filter, filtered, above, to);
    case 4:
      return unfilter<4>(filter, filtered, above, to);
    default:
      return false;
  }
}

// Samples of a pixel; 0 for a picture that is left to stb_image.
int plain_channels(const PngInfo& info) {
  if (info.depth != 8 || info.interlaced) {
    return 0;
  }
  switch (info.color) {
    case kPngGray:
      return 1;
    case kPngGrayAlpha:
      return 2;
    case kPngRgb:
      return 3;
    case kPngRgba:
      return 4;
    default:
      return 0;
  }
}

std::vector<std::uint8_t> join(const std::vector<Bytes>& pieces) {
  std::size_t size = 0;
  for (const Bytes& piece : pieces) {
    size += piece.size();
  }
  std::vector<std::uint8_t> whole;
  whole.reserve(size);
  for (const Bytes& piece : pieces) {
    whole.insert(whole.end(), piece.begin(), piece.end());
  }
  return whole;
}

void to_rgb(const std::uint8_t* row, int channels, std::uint8_t* to, int width) {
  for (int x = 0; x < width; ++x, row += channels, to += kImageChannels) {
    if (channels <= 2) {
      std::fill_n(to, kImageChannels, row[0]);
    } else {
      std::copy_n(row, kImageChannels, to);
    }
  }
}

// Nothing where the data is not what the header announces.
std::optional<Image> decode_plain(const PngInfo& info, int channels) {
  const std::size_t row_bytes =
      static_cast<std::size_t>(info.width) * static_cast<std::size_t>(channels);
  const std::size_t filtered_bytes = (row_bytes + 1) * static_cast<std::size_t>(info.height);
  const std::vector<std::uint8_t> joined =
      info.data.size() > 1 ? join(info.data) : std::vector<std::uint8_t>();
  const Bytes packed = info.data.size() > 1 ? Bytes(joined) : info.data[0];
  if (!can_inflate_to(packed.size(), filtered_bytes)) {
    return std::nullopt;
  }
  const auto filtered = std::make_unique_for_overwrite<std::uint8_t[]>(filtered_bytes);
  if (!inflate_with_stb(packed, {filtered.get(), filtered_bytes})) {
    return std::nullopt;
  }

  Image image(info.width, info.height);
  const std::vector<std::uint8_t> zeros(row_bytes);
  const std::uint8_t* above = zeros.data();
  for (int y = 0; y < info.height; ++y) {
    std::uint8_t* from = filtered.get() + (row_bytes + 1) * static_cast<std::size_t>(y);
    const bool direct = channels == kImageChannels;
    std::uint8_t* to = direct ? image.row(y) : from + 1;
    if (!unfilter_png_row(from[0], channels, {from + 1, row_bytes}, above, to)) {
      return std::nullopt;
    }
    if (!direct) {
      to_rgb(to, channels, image.row(y), info.width);
    }
    above = to;
  }
  return image;
}

}  // namespace

RawPicture decode_png(Bytes file, const std::string& what) {
  const PngInfo info = check_png(file, what);
  RawPicture picture;
  std::optional<Image> plain;
  if (const int channels = plain_channels(info); channels > 0) {
    plain = decode_plain(info, channels);
    picture.channels = channels;
  }
  if (plain) {
    picture.image = std::move(*plain);
  } else {
    // Also where plain data was not as expected: stb_image passes over what follows the last row.
    picture = decode_with_stb(file, what);
  }
  picture.orientation = info.orientation;
  return picture;
}

}  // namespace run_model
