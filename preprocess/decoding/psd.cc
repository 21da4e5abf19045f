// Source of the format: Adobe Photoshop File Formats Specification, "File header section",
// "Image data section".
#include <cstdint>
#include <string>
#include <vector>

#include "preprocess/decoding/decoders.h"

namespace run_model {
namespace {

constexpr std::size_t kPsdChannelsAt = 12;
constexpr std::uint32_t kPsdColorChannels = 3;
constexpr std::uint32_t kPsdRgb = 3;  // the colour mode
constexpr std::uint32_t kPsdRunLengths = 1;

}  // namespace

RawPicture decode_psd(Bytes file, const std::string& what) {
  ByteReader reader = picture_reader(file, what);
  reader.skip(kPsdChannelsAt);
  const std::uint32_t channels = reader.u16();
  const std::uint64_t height = reader.u32();
  reader.skip(4 + 2);  // width, bits
  const std::uint32_t color_mode = reader.u16();
  for (int section = 0; section < 3; ++section) {
    reader.skip(reader.u32());  // colour mode data, resources, layers
  }
  const std::uint32_t compression = reader.u16();
  if (color_mode == kPsdRgb && channels < kPsdColorChannels) {
    damaged_picture(what, "PSD", "it has " + std::to_string(channels) + " of three colours");
  }
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

}  // namespace run_model
