#include <run_model/decode.h>

#include <utility>
#include <vector>

#include "base/text.h"
#include "preprocess/exif.h"
#include "preprocess/gif.h"
#include "preprocess/jpeg.h"
#include "preprocess/picture_file.h"
#include "preprocess/png.h"
#include "preprocess/pnm.h"
#include "preprocess/psd.h"
#include "preprocess/stb_decode.h"
#include "preprocess/tga.h"

namespace run_model {
Picture decode_picture(Bytes file, const std::string& path) {
  const std::string what = path_in_quotes(path);
  Picture picture;
  picture.format = detect_picture_format(file, path);
  RawPicture raw;
  switch (picture.format) {
    case PictureFormat::kPng:
      raw = decode_png(file, what);
      break;
    case PictureFormat::kJpeg:
      raw = decode_jpeg(file, what);
      break;
    case PictureFormat::kPnm:
      raw = decode_pnm(file, what);
      break;
    case PictureFormat::kGif:
      raw = decode_gif(file, what);
      break;
    case PictureFormat::kPsd:
      raw = decode_psd(file, what);
      break;
    case PictureFormat::kTga:
      raw = decode_tga(file, what);
      break;
    case PictureFormat::kBmp:
      raw = decode_with_stb(file, what);
      break;
  }
  picture.channels = raw.channels;
  picture.orientation = raw.orientation;
  picture.image = apply_orientation(std::move(raw.image), raw.orientation);
  return picture;
}

Picture load_picture(const std::string& path) {
  const std::vector<std::uint8_t> file = read_picture_file(path);
  return decode_picture(file, path);
}

}  // namespace run_model
