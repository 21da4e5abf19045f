#include "preprocess/drop_alpha.h"

#include "runtime/error.h"

namespace run_model {
namespace {

// Skips GIF sub-blocks: each a length and that many bytes, ended by a length of 0.
void skip_sub_blocks(PictureReader& reader) {
  while (const std::size_t length = reader.u8()) {
    reader.take(length);
  }
}

// Skips the colour table that the flags of a GIF header or image descriptor announce.
void skip_color_table(PictureReader& reader, int flags) {
  if ((flags & 0x80) != 0) {
    reader.take(std::size_t{3} << ((flags & 7) + 1));
  }
}

}  // namespace

// Source: GIF89a specification, sections 17 to 26.
std::vector<std::uint8_t> gif_without_transparency(Bytes file, const std::string& what) {
  constexpr int kExtension = 0x21;
  constexpr int kGraphicControl = 0xF9;
  constexpr int kImageDescriptor = 0x2C;
  constexpr std::uint8_t kTransparent = 1;

  std::vector<std::uint8_t> result(file.begin(), file.end());
  PictureReader reader(file, what);
  reader.take(10);  // signature, version, width and height
  const int flags = reader.u8();
  reader.take(2);
  skip_color_table(reader, flags);
  for (;;) {
    const std::size_t start = reader.position();
    const int block = reader.u8();
    if (block == kImageDescriptor) {
      reader.take(8);
      skip_color_table(reader, reader.u8());
      reader.u8();
      skip_sub_blocks(reader);
      return result;
    }
    if (block != kExtension) {
      throw Error(ErrorCode::kImage, what + ": the GIF picture has no image before byte " +
                                         std::to_string(start), "copy or download the file again");
    }
    if (reader.u8() == kGraphicControl && reader.left() >= 2 && file[reader.position()] == 4) {
      result[reader.position() + 1] &= static_cast<std::uint8_t>(~kTransparent);
    }
    skip_sub_blocks(reader);
  }
}

// Source: Adobe Photoshop File Formats Specification, "File header" and "Image data".
std::vector<std::uint8_t> psd_without_alpha(Bytes file, const std::string& what) {
  constexpr std::size_t kChannelsAt = 12;
  constexpr std::uint32_t kColorChannels = 3;
  constexpr std::uint32_t kRunLengths = 1;

  PictureReader reader(file, what);
  reader.take(kChannelsAt);
  const std::uint32_t channels = reader.u16be();
  const std::size_t height = reader.u32be();
  reader.take(4 + 2 + 2);  // width, bits, colour mode
  for (int section = 0; section < 3; ++section) {
    reader.take(reader.u32be());  // colour mode data, resources, layers
  }
  const std::uint32_t compression = reader.u16be();
  std::vector<std::uint8_t> result(file.begin(), file.end());
  if (channels <= kColorChannels) {
    return result;
  }
  result[kChannelsAt] = 0;
  result[kChannelsAt + 1] = kColorChannels;
  if (compression == kRunLengths) {
    // The planes follow a table of the bytes of every row of every channel.
    reader.take(kColorChannels * height * 2);
    const auto surplus = result.begin() + static_cast<std::ptrdiff_t>(reader.position());
    const std::size_t bytes = (channels - kColorChannels) * height * 2;
    reader.take(bytes);
    result.erase(surplus, surplus + static_cast<std::ptrdiff_t>(bytes));
  }
  return result;
}

}  // namespace run_model
