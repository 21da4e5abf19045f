#include "preprocess/psd.h"

#include <algorithm>
#include <vector>

namespace run_model {
namespace {

// Source: Adobe Photoshop File Formats Specification, "File header section", "Image data section".
constexpr std::size_t kChannelsAt = 12;
constexpr std::uint32_t kColorChannels = 3;
constexpr std::uint32_t kRunLengths = 1;

}  // namespace

RawPicture decode_psd(Bytes file, const std::string& what) {
  PictureReader reader(file, what);
  reader.take(kChannelsAt);
  const std::uint32_t channels = reader.u16be();
  const std::uint64_t height = reader.u32be();
  reader.take(4 + 2 + 2);  // width, bits, colour mode
  for (int section = 0; section < 3; ++section) {
    reader.take(reader.u32be());  // colour mode data, resources, layers
  }
  const std::uint32_t compression = reader.u16be();
  if (channels <= kColorChannels) {
    return decode_with_stb(file, what);
  }

  std::vector<std::uint8_t> reduced(file.begin(), file.end());
  reduced[kChannelsAt] = 0;
  reduced[kChannelsAt + 1] = kColorChannels;
  if (compression == kRunLengths) {
    // Before the channels lies a table of the bytes of every row of every channel.
    const auto rows_take = [&](std::uint32_t count) {
      const std::uint64_t bytes = count * height * 2;
      return reader.take(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, file.size() + 1)))
          .size();
    };
    rows_take(kColorChannels);
    const auto surplus = reduced.begin() + static_cast<std::ptrdiff_t>(reader.position());
    reduced.erase(surplus,
                  surplus + static_cast<std::ptrdiff_t>(rows_take(channels - kColorChannels)));
  }
  RawPicture picture = decode_with_stb(reduced, what);
  picture.channels = kColorChannels + 1;
  return picture;
}

}  // namespace run_model
