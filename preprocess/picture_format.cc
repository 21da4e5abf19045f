#include <run_model/picture_format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include <run_model/error.h>
#include "base/enum_names.h"
#include "base/text.h"

namespace run_model {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view kReadable =
    "PNG, JPEG, WebP, BMP, PNM, GIF, PSD and TGA pictures can be read";

constexpr auto kFormats = enum_names<PictureFormat>({{PictureFormat::kPng, "PNG"},
                                                     {PictureFormat::kJpeg, "JPEG"},
                                                     {PictureFormat::kBmp, "BMP"},
                                                     {PictureFormat::kPnm, "PNM"},
                                                     {PictureFormat::kGif, "GIF"},
                                                     {PictureFormat::kPsd, "PSD"},
                                                     {PictureFormat::kTga, "TGA"},
                                                     {PictureFormat::kWebp, "WebP"}});

using Bytes = std::span<const std::uint8_t>;

struct Known {
  std::size_t offset;
  std::string_view magic;
  PictureFormat format;
};

constexpr std::array kKnown = {
    Known{0, "\x89PNG\r\n\x1a\n"sv, PictureFormat::kPng},
    Known{0, "\xFF\xD8\xFF"sv, PictureFormat::kJpeg},
    Known{0, "BM"sv, PictureFormat::kBmp},
    Known{0, "GIF87a"sv, PictureFormat::kGif},
    Known{0, "GIF89a"sv, PictureFormat::kGif},
    Known{0, "8BPS"sv, PictureFormat::kPsd},
    Known{8, "WEBP"sv, PictureFormat::kWebp},
};

struct Foreign {
  std::size_t offset;
  std::string_view magic;
  std::string_view name;
};

constexpr std::array kForeign = {
    Foreign{0, "#?RADIANCE"sv, "a Radiance HDR picture, whose values have no 8-bit meaning"sv},
    Foreign{0, "#?RGBE"sv, "a Radiance HDR picture, whose values have no 8-bit meaning"sv},
    Foreign{0, "PF"sv, "a floating-point PFM picture, whose values have no 8-bit meaning"sv},
    Foreign{0, "Pf"sv, "a floating-point PFM picture, whose values have no 8-bit meaning"sv},
    Foreign{0, "P7\n"sv, "a PAM picture"sv},
    Foreign{0, "II*\0"sv, "a TIFF picture"sv},
    Foreign{0, "MM\0*"sv, "a TIFF picture"sv},
    Foreign{4, "ftypavif"sv, "an AVIF picture"sv},
    Foreign{4, "ftyp"sv, "a HEIF picture or a video"sv},
    Foreign{0, "\0\0\0\x0CjP  "sv, "a JPEG 2000 picture"sv},
    Foreign{0, "\xFF\x0A"sv, "a JPEG XL picture"sv},
    Foreign{0, "\0\0\0\x0CJXL "sv, "a JPEG XL picture"sv},
    Foreign{0, "\0\0\1\0"sv, "a Windows icon"sv},
    Foreign{0, "%PDF"sv, "a PDF document"sv},
    Foreign{0, "<svg"sv, "an SVG drawing"sv},
    Foreign{0, "<?xml"sv, "an XML file"sv},
    Foreign{0, "<!DOCTYPE"sv, "an HTML page"sv},
    Foreign{0, "<html"sv, "an HTML page"sv},
    Foreign{0, "\x93NUMPY"sv, "a NumPy array"sv},
    Foreign{0, "PK\x03\x04"sv, "a ZIP archive (or .npz)"sv},
    Foreign{0,
            "\x7F"
            "ELF"sv,
            "a program or library"sv},
};

bool begins_with(Bytes file, std::size_t offset, std::string_view magic) {
  return file.size() >= offset + magic.size() &&
         std::equal(magic.begin(), magic.end(), file.begin() + static_cast<std::ptrdiff_t>(offset),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

bool is_pnm(Bytes file) {
  return file.size() >= 3 && file[0] == 'P' && file[1] >= '1' && file[1] <= '6' &&
         (std::isspace(file[2]) != 0 || file[2] == '#');
}

bool is_tga(Bytes file, const std::string& path) {
  constexpr std::string_view kFooter = "TRUEVISION-XFILE.\0"sv;
  if (file.size() >= kFooter.size() && begins_with(file, file.size() - kFooter.size(), kFooter)) {
    return true;
  }
  std::string extension = std::filesystem::path(path).extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension == ".tga" || extension == ".icb" || extension == ".vda" || extension == ".vst";
}

}  // namespace

std::string_view picture_format_name(PictureFormat format) { return kFormats.name(format); }

PictureFormat detect_picture_format(std::span<const std::uint8_t> file, const std::string& path) {
  const std::string what = path_in_quotes(path);
  if (file.empty()) {
    throw Error(ErrorKind::kImage, what + ": the file is empty", kReadable);
  }
  for (const Known& known : kKnown) {
    if (begins_with(file, known.offset, known.magic)) {
      return known.format;
    }
  }
  if (is_pnm(file)) {
    return PictureFormat::kPnm;
  }
  for (const Foreign& foreign : kForeign) {
    if (begins_with(file, foreign.offset, foreign.magic)) {
      throw Error(ErrorKind::kImage, what + ": this is " + std::string(foreign.name),
                  std::string(kReadable) + "; convert it to PNG");
    }
  }
  if (is_tga(file, path)) {
    return PictureFormat::kTga;
  }
  throw Error(ErrorKind::kImage, what + ": this is not a picture of a known format", kReadable);
}

}  // namespace run_model
