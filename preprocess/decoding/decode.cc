#include <run_model/decode.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/enum_names.h"
#include "base/file.h"
#include "base/text.h"
#include "preprocess/decoding/decoders.h"
#include "preprocess/image_operations.h"

namespace run_model {
namespace {

constexpr auto kJpegDecoders = enum_names<JpegDecoder>(
    {{JpegDecoder::kLibjpegTurbo, "libjpeg-turbo"}, {JpegDecoder::kStb, "stb"}});

constexpr const char* kAgain = "copy or download the file again";

Error picture_error(const ByteFault& fault) {
  const std::string problem = fault.past_end
                                  ? "the picture is truncated at byte " + std::to_string(fault.end)
                                  : "the picture is damaged: " + fault.problem;
  return Error(ErrorKind::kImage, std::string(fault.source) + ": " + problem, kAgain);
}

RawPicture decode_raw(Bytes file, const std::string& what, PictureFormat format,
                      JpegDecoder jpeg_decoder) {
  switch (format) {
    case PictureFormat::kPng:
      return decode_png(file, what);
    case PictureFormat::kJpeg: {
      RawPicture picture = decode_jpeg(file, what);
      if (jpeg_decoder == JpegDecoder::kStb) {
        picture.image = decode_with_stb(file, what).image;
      }
      return picture;
    }
    case PictureFormat::kPnm:
      return decode_pnm(file, what);
    case PictureFormat::kGif:
      return decode_gif(file, what);
    case PictureFormat::kPsd:
      return decode_psd(file, what);
    case PictureFormat::kTga:
      return decode_tga(file, what);
    case PictureFormat::kBmp:
      return decode_bmp(file, what);
    case PictureFormat::kWebp:
      return decode_webp(file, what);
  }
  throw Error(ErrorKind::kInternal, what + ": there is no decoder for its format");
}

std::vector<std::byte> read_picture_file(const std::string& path) {
  constexpr auto kLimit = static_cast<std::size_t>(kMaxImageFileBytes);
  const OwnedFd file = open_to_read(path);
  std::optional<std::vector<std::byte>> bytes;
  if (file) {
    bytes = read_to_end(file.get(), kLimit + 1);
  }
  if (!bytes) {
    const int error = errno;
    const bool missing = error == ENOENT || error == ENOTDIR;
    throw Error(ErrorKind::kFile,
                path_in_quotes(path) + (missing ? ": there is no such picture file"
                                                : std::string(": the picture cannot be read: ") +
                                                      std::strerror(error)),
                missing ? "check the path" : "");
  }
  if (bytes->size() > kLimit) {
    throw Error(ErrorKind::kImage,
                path_in_quotes(path) + ": the picture file is larger than the limit of " +
                    std::to_string(kLimit >> 20) + " MiB",
                "give a smaller picture");
  }
  return *std::move(bytes);
}

}  // namespace

ByteReader picture_reader(Bytes bytes, const std::string& what, std::endian order) {
  return {bytes, what, {.order = order, .error = picture_error}};
}

void damaged_picture(const std::string& what, std::string_view format, const std::string& found) {
  throw Error(ErrorKind::kImage,
              what + ": the " + std::string(format) + " picture is damaged: " + found, kAgain);
}

std::string_view jpeg_decoder_name(JpegDecoder decoder) { return kJpegDecoders.name(decoder); }

JpegDecoder parse_jpeg_decoder(std::string_view name) {
  return kJpegDecoders.parse(name, "JPEG decoder");
}

Picture decode_picture(std::span<const std::uint8_t> file, const std::string& path,
                       JpegDecoder jpeg_decoder) {
  const PictureFormat format = detect_picture_format(file, path);
  RawPicture raw = decode_raw(file, path_in_quotes(path), format, jpeg_decoder);
  return {apply_orientation(std::move(raw.image), raw.orientation), format, raw.channels,
          raw.orientation};
}

Picture load_picture(const std::string& path, JpegDecoder jpeg_decoder) {
  const std::vector<std::byte> file = read_picture_file(path);
  return decode_picture({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()}, path,
                        jpeg_decoder);
}

}  // namespace run_model
