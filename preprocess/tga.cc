#include "preprocess/tga.h"

#include <run_model/error.h>
#include "preprocess/exif.h"

namespace run_model {
namespace {

// Source: Truevision TGA File Format Specification 2.0, fields 2, 4.1 and 5.6.
constexpr std::size_t kTgaHeaderBytes = 18;
constexpr std::size_t kHasPaletteAt = 1;
constexpr std::size_t kFirstEntryAt = 3;
constexpr std::size_t kDescriptorAt = 17;
constexpr int kRightToLeft = 0x10;
constexpr int kMirrored = 2;  // EXIF's number for it

}  // namespace

RawPicture decode_tga(Bytes file, const std::string& what) {
  const Bytes header = PictureReader(file, what).take(kTgaHeaderBytes);
  if (header[kHasPaletteAt] == 1 &&
      (header[kFirstEntryAt] != 0 || header[kFirstEntryAt + 1] != 0)) {
    throw Error(ErrorKind::kImage,
                what + ": the palette of the TGA picture does not begin at entry 0",
                "convert the picture to PNG");
  }
  RawPicture picture = decode_with_stb(file, what);
  if ((header[kDescriptorAt] & kRightToLeft) != 0) {
    picture.image = apply_orientation(std::move(picture.image), kMirrored);
  }
  return picture;
}

}  // namespace run_model
