// Source of the format: GIF89a specification, sections 17 to 26 and appendix F.
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "preprocess/decoding/decoders.h"

namespace run_model {
namespace {

constexpr int kExtension = 0x21;
constexpr int kGraphicControl = 0xF9;
constexpr int kImageDescriptor = 0x2C;
constexpr int kGraphicControlBytes = 4;
constexpr std::uint8_t kTransparentFlag = 1;
constexpr int kLongestCode = 12;
constexpr std::size_t kSizeAt = 6;  // of the picture in the file: width and height, 16 bits each

// The colour table that the flags of a header or image descriptor announce; empty without one.
Bytes color_table(ByteReader& reader, int flags) {
  return (flags & 0x80) != 0 ? reader.octets(std::size_t{3} << ((flags & 7) + 1)) : Bytes();
}

// The bytes of sub-blocks: each a length and that many bytes, ended by a length of 0.
std::vector<std::uint8_t> sub_blocks(ByteReader& reader) {
  std::vector<std::uint8_t> result;
  while (const std::size_t length = reader.u8()) {
    const Bytes block = reader.octets(length);
    result.insert(result.end(), block.begin(), block.end());
  }
  return result;
}

// The number of pixels, at most `wanted`, that the LZW codes in `data` stand for. Stops at a code
// that cannot occur there.
std::int64_t count_pixels(Bytes data, int root_bits, std::int64_t wanted) {
  const int clear = 1 << root_bits;
  const int end = clear + 1;
  std::array<std::int32_t, 1 << kLongestCode> lengths{};
  std::fill_n(lengths.begin(), clear, 1);
  int next = end + 1;
  int code_bits = root_bits + 1;
  int previous = -1;
  std::int64_t pixels = 0;
  std::uint32_t buffer = 0;
  int available = 0;
  for (const std::uint8_t byte : data) {
    buffer |= static_cast<std::uint32_t>(byte) << available;
    for (available += 8; available >= code_bits;) {
      const int code = static_cast<int>(buffer & ((1U << code_bits) - 1));
      buffer >>= code_bits;
      available -= code_bits;
      if (code == clear) {
        next = end + 1;
        code_bits = root_bits + 1;
        previous = -1;
        continue;
      }
      if (code == end || code > next || (code == next && previous < 0)) {
        return pixels;
      }
      if (previous >= 0 && next < 1 << kLongestCode) {
        lengths[static_cast<std::size_t>(next++)] = lengths[static_cast<std::size_t>(previous)] + 1;
        if (next == 1 << code_bits && code_bits < kLongestCode) {
          ++code_bits;
        }
      }
      pixels += lengths[static_cast<std::size_t>(code)];
      if (pixels >= wanted) {
        return wanted;
      }
      previous = code;
    }
  }
  return pixels;
}

struct Frame {
  std::vector<std::uint8_t> file;  // without transparency, and the frame lies within the picture
  Region region;
  std::array<std::uint8_t, kImageChannels> around{};
};

// The picture as large as its frame asks for.
void enlarge(Frame& frame) {
  const std::array ends = {frame.region.x + frame.region.width,
                           frame.region.y + frame.region.height};
  for (std::size_t i = 0; i < ends.size(); ++i) {
    std::uint8_t* const at = &frame.file[kSizeAt + 2 * i];
    const int side = std::min(std::max(at[0] | at[1] << 8, ends[i]), kMaxImageSide);
    at[0] = static_cast<std::uint8_t>(side & 0xFF);
    at[1] = static_cast<std::uint8_t>(side >> 8);
  }
}

Frame read_first_frame(Bytes file, const std::string& what) {
  ByteReader reader = picture_reader(file, what, std::endian::little);
  reader.skip(10);  // signature, version, width and height
  const int flags = reader.u8();
  reader.skip(2);
  Bytes palette = color_table(reader, flags);

  Frame frame;
  frame.file.assign(file.begin(), file.end());
  std::size_t transparent = 0;
  for (;;) {
    const std::string place = " at byte " + std::to_string(reader.position());
    const int block = reader.u8();
    if (block == kImageDescriptor) {
      break;
    }
    if (block != kExtension) {
      damaged_picture(what, "GIF", "there is neither an image nor an extension" + place);
    }
    const int label = reader.u8();
    const auto start = static_cast<std::size_t>(reader.position());
    const std::vector<std::uint8_t> body = sub_blocks(reader);
    if (label == kGraphicControl && file[start] == kGraphicControlBytes) {
      transparent = (body[0] & kTransparentFlag) != 0 ? body[3] : 0;
      frame.file[start + 1] &= static_cast<std::uint8_t>(~kTransparentFlag);
    }
  }
  frame.region.x = reader.u16();
  frame.region.y = reader.u16();
  frame.region.width = reader.u16();
  frame.region.height = reader.u16();
  enlarge(frame);
  if (const Bytes local = color_table(reader, reader.u8()); !local.empty()) {
    palette = local;
  }
  if (3 * transparent + 3 <= palette.size()) {
    std::copy_n(palette.begin() + static_cast<std::ptrdiff_t>(3 * transparent), 3,
                frame.around.begin());
  }
  const int root_bits = reader.u8();
  if (root_bits < 1 || root_bits >= kLongestCode) {
    damaged_picture(what, "GIF", "its codes begin with " + std::to_string(root_bits) + " bits");
  }
  const std::int64_t wanted = std::int64_t{frame.region.width} * frame.region.height;
  const std::int64_t found = count_pixels(sub_blocks(reader), root_bits, wanted);
  if (found < wanted) {
    damaged_picture(
        what, "GIF",
        "its data has " + std::to_string(found) + " pixels instead of " + std::to_string(wanted));
  }
  return frame;
}

}  // namespace

RawPicture decode_gif(Bytes file, const std::string& what) {
  const Frame frame = read_first_frame(file, what);
  RawPicture picture = decode_with_stb(frame.file, what);
  const Region& inner = frame.region;
  for (int y = 0; y < picture.image.height(); ++y) {
    std::uint8_t* to = picture.image.row(y);
    for (int x = 0; x < picture.image.width(); ++x, to += kImageChannels) {
      const bool inside =
          x >= inner.x && x - inner.x < inner.width && y >= inner.y && y - inner.y < inner.height;
      if (!inside) {
        std::copy(frame.around.begin(), frame.around.end(), to);
      }
    }
  }
  return picture;
}

}  // namespace run_model
