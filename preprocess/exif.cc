#include "preprocess/exif.h"

#include <algorithm>
#include <cstring>
#include <optional>

namespace run_model {
namespace {

constexpr std::uint32_t kOrientationTag = 0x0112;

// Little- or big-endian numbers at offsets; nothing where the offset leaves the block.
class Tiff {
 public:
  explicit Tiff(Bytes bytes) : bytes_(bytes), little_(!bytes.empty() && bytes[0] == 'I') {}

  std::optional<std::uint32_t> number(std::size_t offset, std::size_t size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size) {
      return std::nullopt;
    }
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value = value << 8 | bytes_[offset + (little_ ? size - 1 - i : i)];
    }
    return value;
  }

 private:
  Bytes bytes_;
  bool little_;
};

// Bytes of one value of a TIFF field type that may hold the orientation; 0 for other types.
std::size_t integer_size(std::uint32_t type) {
  switch (type) {
    case 1:
      return 1;  // BYTE
    case 3:
      return 2;  // SHORT, the type that the standard asks for
    case 4:
      return 4;  // LONG
    default:
      return 0;
  }
}

// Where the pixel (x, y) of the upright picture lies in the stored one of `width` x `height`.
struct Walk {
  std::ptrdiff_t start;
  std::ptrdiff_t step_x;
  std::ptrdiff_t step_y;
};

Walk source_of(int orientation, std::ptrdiff_t width, std::ptrdiff_t height) {
  const std::ptrdiff_t right = width - 1;
  const std::ptrdiff_t bottom = (height - 1) * width;
  switch (orientation) {
    case 2:
      return {right, -1, width};
    case 3:
      return {bottom + right, -1, -width};
    case 4:
      return {bottom, 1, -width};
    case 5:
      return {0, width, 1};
    case 6:
      return {bottom, -width, 1};
    case 7:
      return {bottom + right, -width, -1};
    case 8:
      return {right, width, -1};
    default:
      return {0, 1, width};
  }
}

}  // namespace

int exif_orientation(Bytes bytes) {
  if (bytes.size() < 8 || (bytes[0] != 'I' && bytes[0] != 'M') || bytes[0] != bytes[1]) {
    return kOrientationNormal;
  }
  const Tiff tiff(bytes);
  if (tiff.number(2, 2) != 42U) {
    return kOrientationNormal;
  }
  const std::size_t directory = tiff.number(4, 4).value_or(0);
  const std::uint32_t entries = tiff.number(directory, 2).value_or(0);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    const auto tag = tiff.number(entry, 2);
    if (!tag) {
      break;
    }
    if (*tag != kOrientationTag) {
      continue;
    }
    const std::size_t size = integer_size(tiff.number(entry + 2, 2).value_or(0));
    const auto value = tiff.number(entry + 8, size);
    const bool valid =
        size > 0 && tiff.number(entry + 4, 4) == 1U && value && *value >= 1 && *value <= 8;
    return valid ? static_cast<int>(*value) : kOrientationNormal;
  }
  return kOrientationNormal;
}

Image apply_orientation(Image image, int orientation) {
  if (orientation <= kOrientationNormal || orientation > 8) {
    return image;
  }
  const bool turned = orientation >= 5;
  Image upright(turned ? image.height() : image.width(), turned ? image.width() : image.height());
  const Walk source = source_of(orientation, image.width(), image.height());
  // Tiles keep both pictures in the cache when rows become columns.
  constexpr int kTile = 32;
  for (int top = 0; top < upright.height(); top += kTile) {
    for (int left = 0; left < upright.width(); left += kTile) {
      const int right = std::min(left + kTile, upright.width());
      for (int y = top; y < std::min(top + kTile, upright.height()); ++y) {
        std::uint8_t* to = upright.row(y) + static_cast<std::ptrdiff_t>(left) * kImageChannels;
        for (int x = left; x < right; ++x, to += kImageChannels) {
          const std::ptrdiff_t pixel = source.start + source.step_x * x + source.step_y * y;
          std::memcpy(to, image.data() + pixel * kImageChannels, kImageChannels);
        }
      }
    }
  }
  return upright;
}

}  // namespace run_model
