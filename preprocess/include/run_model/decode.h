// From a picture file to upright 8-bit RGB pixels.
//
// The rules, which are those of Pillow's convert("RGB") after ImageOps.exif_transpose:
//   grey         copied to all three channels
//   alpha        dropped: the colour as stored, not blended with a background
//   palette      looked up; an index beyond the palette is black
//   16 bits      the high byte in PNG (also for grey, where Pillow saturates instead) and PSD; PNM
//                samples are scaled from their greatest value and rounded
//   orientation  of EXIF or, where that has none, XMP in JPEG and PNG is applied
//   animation    the first frame
//   colour space gamma and ICC profiles are ignored
//   HDR          refused: what 8-bit values its light would have is not ours to decide
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <run_model/image.h>
#include <run_model/picture_format.h>

namespace run_model {

struct Picture {
  Image image;  // upright
  PictureFormat format = PictureFormat::kPng;
  int channels = 0;     // in the file, 1 to 4
  int orientation = 1;  // that was applied
};

// JPEG leaves its decoders some freedom. libjpeg-turbo's pixels are those of Pillow and OpenCV;
// stb_image's, up to 6 levels off, are those of wrappers built on it. Both refuse what
// libjpeg-turbo refuses.
enum class JpegDecoder { kLibjpegTurbo, kStb };

// "libjpeg-turbo" or "stb".
std::string_view jpeg_decoder_name(JpegDecoder decoder);

// The inverse of jpeg_decoder_name. Throws Error(kUsage) listing the names when `name` is none of
// them.
JpegDecoder parse_jpeg_decoder(std::string_view name);

// Decodes `file`, the whole contents of a picture file. `path` begins the sentence of an error, and
// its ending tells TGA. Throws Error(kImage) when the picture is damaged, truncated, of an unknown
// format or beyond the limits of image.h; nothing large is allocated before the header has been
// checked against them.
Picture decode_picture(std::span<const std::uint8_t> file, const std::string& path,
                       JpegDecoder jpeg_decoder = JpegDecoder::kLibjpegTurbo);

// Reads and decodes the file at `path`. Throws Error(kFile) when it cannot be read, and as above.
Picture load_picture(const std::string& path,
                     JpegDecoder jpeg_decoder = JpegDecoder::kLibjpegTurbo);

}  // namespace run_model
