#include "preprocess/decode.h"

#include <vector>

#include "preprocess/drop_alpha.h"
#include "preprocess/exif.h"
#include "preprocess/jpeg_check.h"
#include "preprocess/picture_file.h"
#include "preprocess/png_check.h"
#include "preprocess/pnm.h"
#include "preprocess/stb_decode.h"
#include "runtime/error.h"
#include "runtime/quoted.h"

namespace run_model {
namespace {

StbPicture decode_tga(Bytes file, const std::string& what) {
  constexpr std::size_t kHeaderBytes = 18;
  constexpr int kRightToLeft = 0x10;
  constexpr int kMirrored = 2;  // EXIF's number for it

  PictureReader reader(file, what);
  const Bytes header = reader.take(kHeaderBytes);
  // stb_image takes the first palette index for a count of bytes to skip.
  if (header[1] == 1 && (header[3] != 0 || header[4] != 0)) {
    throw Error(ErrorCode::kImage, what + ": the palette of the TGA picture does not begin at 0",
                "convert the picture to PNG");
  }
  StbPicture picture = decode_with_stb(file, what);
  if ((header[17] & kRightToLeft) != 0) {
    picture.image = apply_orientation(std::move(picture.image), kMirrored);
  }
  return picture;
}

}  // namespace

Picture decode_picture(Bytes file, const std::string& path) {
  const std::string what = path_in_quotes(path);
  Picture picture;
  picture.format = detect_picture_format(file, path);
  StbPicture decoded;
  switch (picture.format) {
    case PictureFormat::kPng:
      picture.orientation = check_png(file, what).orientation;
      decoded = decode_with_stb(file, what);
      break;
    case PictureFormat::kJpeg: {
      const JpegInfo info = check_jpeg(file, what);
      picture.orientation = info.orientation;
      decoded = decode_with_stb(file, what);
      decoded.channels = info.channels;  // stb_image tells of CMYK as 3
      break;
    }
    case PictureFormat::kPnm: {
      PnmPicture pnm = decode_pnm(file, what);
      decoded = {std::move(pnm.image), pnm.channels};
      break;
    }
    case PictureFormat::kGif:
      decoded = decode_with_stb(gif_without_transparency(file, what), what);
      break;
    case PictureFormat::kPsd:
      decoded = decode_with_stb(psd_without_alpha(file, what), what);
      break;
    case PictureFormat::kTga:
      decoded = decode_tga(file, what);
      break;
    case PictureFormat::kBmp:
      decoded = decode_with_stb(file, what);
      break;
  }
  picture.channels = decoded.channels;
  picture.image = apply_orientation(std::move(decoded.image), picture.orientation);
  return picture;
}

Picture load_picture(const std::string& path) {
  const std::vector<std::uint8_t> file = read_picture_file(path);
  return decode_picture(file, path);
}

}  // namespace run_model
