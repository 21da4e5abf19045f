#include "preprocess/png.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "preprocess/png_check.h"
#include "preprocess/png_filter.h"
#include "preprocess/stb_decode.h"

namespace run_model {
namespace {

// Deflate cannot pack better than 1032 to 1 (zlib's technical notes).
constexpr std::size_t kBestRatio = 1032;

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
  if (filtered_bytes / kBestRatio > packed.size()) {
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
