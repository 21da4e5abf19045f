// Source of the format: "Bitmap Storage" and BITMAPINFOHEADER of Microsoft's documentation of
// Windows GDI, and for headers of 12 and 64 bytes the OS/2 2.0 Presentation Manager reference.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include <run_model/error.h>
#include "preprocess/decoding/decoders.h"

namespace run_model {
namespace {

enum Compression : std::uint32_t { kNone = 0, kRle8 = 1, kRle4 = 2, kMasks = 3, kAlphaMasks = 6 };

// After a count of 0; larger numbers are counts of pixels that differ.
enum Escape : std::uint8_t { kEndOfRow = 0, kEndOfPicture = 1, kJump = 2 };

constexpr std::uint64_t kFileHeader = 14;
constexpr std::uint32_t kCoreHeader = 12;  // OS/2 1.x: 16-bit sizes, palettes of three bytes
constexpr std::uint32_t kInfoHeader = 40;
constexpr std::array<std::uint32_t, 7> kHeaders = {kCoreHeader, kInfoHeader, 52, 56, 64, 108, 124};
constexpr std::uint32_t kOs2Header = 64;  // its other compressions are none of the above

using Rgb = std::array<std::uint8_t, kImageChannels>;

[[noreturn]] void unsupported_bmp(const std::string& what, const std::string& found) {
  throw Error(ErrorKind::kImage, what + ": the BMP picture has " + found + ", which is not read",
              "convert it to PNG");
}

// A colour's bits in a pixel, scaled to 0..255 as Pillow does: value * 255 / greatest, cut off.
class Channel {
 public:
  Channel() = default;
  Channel(std::uint32_t mask, const std::string& what)
      : mask_(mask), shift_(mask == 0 ? 0 : std::countr_zero(mask)) {
    greatest_ = mask >> shift_;
    if (mask == 0 || (greatest_ & (greatest_ + 1)) != 0) {
      damaged_picture(what, "BMP", "the bits of a colour are not beside each other");
    }
  }
  std::uint8_t of(std::uint32_t pixel) const {
    return static_cast<std::uint8_t>(std::uint64_t{(pixel & mask_) >> shift_} * 255 / greatest_);
  }

 private:
  std::uint32_t mask_ = 0;
  int shift_ = 0;
  std::uint32_t greatest_ = 1;
};

class BmpReader {
 public:
  BmpReader(Bytes file, const std::string& what)
      : reader_(picture_reader(file, what, std::endian::little)), what_(what) {}

  RawPicture decode() {
    read_header();
    RawPicture picture{Image(width_, height_), has_alpha_ ? 4 : 3};
    const auto width = static_cast<std::size_t>(width_);
    const std::vector<std::uint8_t> indices =
        has_runs() ? unpack_runs() : std::vector<std::uint8_t>();
    for (int y = 0; y < height_; ++y) {
      std::uint8_t* to = picture.image.row(top_down_ ? y : height_ - 1 - y);
      if (has_runs()) {
        read_row(Bytes(indices).subspan(static_cast<std::size_t>(y) * width, width), 8, to);
      } else {
        read_row(reader_.octets(row_bytes_), bits_, to);
      }
    }
    return picture;
  }

 private:
  void read_header() {
    reader_.skip(10);
    const std::uint64_t pixels = reader_.u32();
    const std::uint32_t header = reader_.u32();
    if (std::find(kHeaders.begin(), kHeaders.end(), header) == kHeaders.end()) {
      unsupported_bmp(what_, "a header of " + std::to_string(header) + " bytes");
    }
    const std::uint32_t colors = read_sizes(header);
    check_kind(header);

    // Masks are a part of the header since that has 52 bytes, and before that follow it.
    std::uint64_t end = kFileHeader + header;
    if (bits_ == 16 || bits_ == 32) {
      end = std::max(end, read_masks(header));
    }
    if (bits_ <= 8) {
      end = read_palette(end, header, pixels, colors);
    }
    // Some writers leave the palette out of their reckoning.
    const bool reckoned = pixels > kFileHeader + header;
    if (reckoned && pixels < end) {
      damaged_picture(what_, "BMP",
                      "its pixels begin at byte " + std::to_string(pixels) + ", among its masks");
    }
    reader_.seek(reckoned ? pixels : end);
    row_bytes_ = (static_cast<std::uint64_t>(width_) * bits_ + 31) / 32 * 4;
    // The least that pixels take, so that a forged header is refused before allocation: of runs,
    // four bytes jump over 255 rows at most.
    const auto rows = static_cast<std::uint64_t>(height_);
    const std::uint64_t least = has_runs() ? rows / 64 : row_bytes_ * rows;
    if (!reader_.contains(reader_.position(), least)) {
      reader_.skip(least);
    }
  }

  // The size of the picture and of its samples. Returns how many colours the palette is said to
  // have.
  std::uint32_t read_sizes(std::uint32_t header) {
    std::int64_t width = 0;
    std::int64_t height = 0;
    std::uint32_t colors = 0;
    if (header == kCoreHeader) {
      width = reader_.u16();
      height = reader_.u16();
      reader_.skip(2);  // planes
      bits_ = reader_.u16();
    } else {
      width = reader_.i32();
      height = reader_.i32();
      reader_.skip(2);
      bits_ = reader_.u16();
      compression_ = reader_.u32();
      reader_.skip(4 + 4 + 4);  // bytes of the pixels, which many leave out, and metres
      colors = reader_.u32();
      reader_.skip(4);
    }
    top_down_ = height < 0;
    height = std::abs(height);
    check_image_size(what_, width, height);
    width_ = static_cast<int>(width);
    height_ = static_cast<int>(height);
    return colors;
  }

  void check_kind(std::uint32_t header) const {
    const bool direct = bits_ == 16 || bits_ == 24 || bits_ == 32;
    bool known = false;
    switch (compression_) {
      case kNone:
        known = direct || bits_ == 1 || bits_ == 2 || bits_ == 4 || bits_ == 8;
        break;
      case kRle8:
        known = bits_ == 8;
        break;
      case kRle4:
        known = bits_ == 4;
        break;
      case kMasks:
      case kAlphaMasks:
        known = direct && header != kOs2Header;
        break;
      default:
        break;
    }
    if (!known) {
      unsupported_bmp(what_, std::to_string(bits_) + " bits a pixel with compression " +
                                 std::to_string(compression_));
    }
    if (top_down_ && has_runs()) {
      damaged_picture(what_, "BMP",
                      "its runs go from top to bottom, which the format does not allow");
    }
  }

  // Returns where the masks end; 0 where there are none.
  std::uint64_t read_masks(std::uint32_t header) {
    if (compression_ == kNone) {
      const bool small = bits_ == 16;  // five bits each
      channels_ = {Channel(small ? 0x7C00 : 0xFF0000, what_),
                   Channel(small ? 0x3E0 : 0xFF00, what_), Channel(small ? 0x1F : 0xFF, what_)};
      has_alpha_ = !small;
      return 0;
    }
    for (Channel& channel : channels_) {
      channel = Channel(reader_.u32(), what_);
    }
    has_alpha_ = compression_ == kAlphaMasks
                     ? reader_.u32() != 0
                     : header >= 56 && reader_.number(reader_.position(), 4) != 0;
    return reader_.position();
  }

  // The entries from `begin` on: as many as the header says, or could be, and fit before the
  // pixels. Others are black. Returns where they end.
  std::uint64_t read_palette(std::uint64_t begin, std::uint32_t header, std::uint64_t pixels,
                             std::uint32_t colors) {
    const std::uint64_t entry_bytes = header == kCoreHeader ? 3 : 4;
    const std::uint64_t most = std::uint64_t{1} << bits_;
    std::uint64_t count = colors == 0 ? most : std::min<std::uint64_t>(colors, 256);
    if (pixels > begin) {
      count = std::min(count, (pixels - begin) / entry_bytes);
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto entry = reader_.at(begin + i * entry_bytes).octets(entry_bytes);
      palette_[i] = {entry[2], entry[1], entry[0]};
    }
    return begin + count * entry_bytes;
  }

  void read_row(Bytes from, std::size_t bits, std::uint8_t* to) const {
    for (std::size_t x = 0; x < static_cast<std::size_t>(width_); ++x) {
      if (bits <= 8) {
        const std::size_t first = x * bits;
        const int index = from[first / 8] >> (8 - bits - first % 8) & ((1 << bits) - 1);
        to = std::copy_n(palette_[static_cast<std::size_t>(index)].begin(), kImageChannels, to);
      } else if (bits == 24) {
        const std::uint8_t* bgr = from.data() + 3 * x;
        *to++ = bgr[2], *to++ = bgr[1], *to++ = bgr[0];
      } else {
        const std::uint8_t* at = from.data() + x * bits / 8;
        std::uint32_t pixel = at[0] | std::uint32_t{at[1]} << 8;
        if (bits == 32) {
          pixel |= std::uint32_t{at[2]} << 16 | std::uint32_t{at[3]} << 24;
        }
        for (const Channel& channel : channels_) {
          *to++ = channel.of(pixel);
        }
      }
    }
  }

  // Indices into the palette, row by row as they are stored. Pixels that are jumped over have the
  // first colour, and a run that is longer than its row ends with it, as in Pillow.
  std::vector<std::uint8_t> unpack_runs() {
    const auto width = static_cast<std::size_t>(width_);
    const auto height = static_cast<std::size_t>(height_);
    std::vector<std::uint8_t> indices(width * height);
    std::size_t x = 0;
    std::size_t y = 0;
    while (y + 1 < height || (y + 1 == height && x < width)) {
      const std::size_t count = reader_.u8();
      const std::uint8_t value = reader_.u8();
      if (count != 0) {
        for (std::size_t i = 0; i < count && x < width; ++i) {
          indices[y * width + x++] = part_of(value, i);
        }
      } else if (value == kEndOfRow) {
        x = 0;
        ++y;
      } else if (value == kEndOfPicture) {
        damaged_picture(what_, "BMP", "its runs end before its last pixel");
      } else if (value == kJump) {
        x += reader_.u8();
        y += reader_.u8();
        if (x > width) {
          damaged_picture(what_, "BMP", "its runs leave a row");
        }
      } else {
        if (value > width - x) {
          damaged_picture(what_, "BMP", "a run of pixels goes beyond its row");
        }
        const std::size_t bytes = compression_ == kRle4 ? (value + 1U) / 2 : value;
        const Bytes pixels = reader_.octets(bytes);
        for (std::size_t i = 0; i < value; ++i) {
          indices[y * width + x++] = part_of(pixels[compression_ == kRle4 ? i / 2 : i], i);
        }
        reader_.skip(bytes % 2);  // up to a whole number of 16 bits
      }
    }
    return indices;
  }

  // The index of pixel `i` of a run: of two in a byte the first is the upper half.
  std::uint8_t part_of(std::uint8_t value, std::size_t i) const {
    if (compression_ == kRle8) {
      return value;
    }
    return i % 2 == 0 ? value >> 4 : value & 15;
  }

  bool has_runs() const { return compression_ == kRle8 || compression_ == kRle4; }

  ByteReader reader_;
  const std::string& what_;
  int width_ = 0;
  int height_ = 0;
  bool top_down_ = false;
  std::size_t bits_ = 0;  // a pixel
  std::uint32_t compression_ = kNone;
  std::uint64_t row_bytes_ = 0;
  bool has_alpha_ = false;
  std::array<Channel, 3> channels_;    // of 16 and 32 bits
  std::array<Rgb, 256> palette_ = {};  // of up to 8 bits
};

}  // namespace

RawPicture decode_bmp(Bytes file, const std::string& what) {
  return BmpReader(file, what).decode();
}

}  // namespace run_model
