#include "preprocess/decode.h"

#include <vector>

#include "preprocess/exif.h"
#include "preprocess/gif.h"
#include "preprocess/jpeg_check.h"
#include "preprocess/picture_file.h"
#include "preprocess/png_check.h"
#include "preprocess/pnm.h"
#include "preprocess/psd.h"
#include "preprocess/stb_decode.h"
#include "preprocess/tga.h"
#include "runtime/quoted.h"

namespace run_model {
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
      decoded = decode_gif(file, what);
      break;
    case PictureFormat::kPsd:
      decoded = decode_psd(file, what);
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
