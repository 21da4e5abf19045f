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

// What else a file may be. Without pointers, which the loader would have to set.
struct Foreign {
  std::uint16_t offset;
  std::uint8_t size;
  char magic[13];
  char name[25];
  // What a person can do.
  enum : char { kConvert, kMap, kTakeFrames, kUnpack, kDownload, kFetch, kNothing } advice;
};

template <std::size_t kSize>
constexpr Foreign foreign(std::uint16_t offset, const char (&magic)[kSize], const char* name,
                          decltype(Foreign::advice) advice = Foreign::kConvert) {
  static_assert(kSize <= sizeof Foreign::magic);
  Foreign result{offset, kSize - 1, {}, {}, advice};
  std::copy_n(magic, kSize, result.magic);
  std::copy_n(name, std::string_view(name).size(), result.name);
  return result;
}

constexpr std::array kForeign = {
    foreign(0, "#?RADIANCE", "a Radiance HDR picture", Foreign::kMap),
    foreign(0, "v/1\1", "an OpenEXR picture", Foreign::kMap),
    foreign(0, "PF", "a PFM picture of floats", Foreign::kMap),
    foreign(0, "Pf", "a PFM picture of floats", Foreign::kMap),
    foreign(0, "P7\n", "a PAM picture"),
    foreign(0, "II*\0", "a TIFF picture"),
    foreign(0, "MM\0*", "a TIFF picture"),
    foreign(0, "II+\0", "a BigTIFF picture"),
    foreign(4, "ftypavi", "an AVIF picture"),
    foreign(4, "ftyphe", "a HEIF picture"),
    foreign(4, "ftypmif1", "a HEIF or AVIF picture"),
    foreign(4, "ftyp", "a video", Foreign::kTakeFrames),
    foreign(0, "\0\0\0\x0CjP  ", "a JPEG 2000 picture"),
    foreign(0, "\xFF\x4F\xFF\x51", "a JPEG 2000 picture"),
    foreign(0, "\xFF\x0A", "a JPEG XL picture"),
    foreign(0, "\0\0\0\x0CJXL ", "a JPEG XL picture"),
    foreign(0, "qoif", "a QOI picture"),
    foreign(0, "DDS ", "a DDS texture"),
    foreign(0, "\1\xDA", "an SGI picture"),
    foreign(0, "\x0A\5\1", "a PCX picture"),
    foreign(0, "\0\0\1\0", "a Windows icon"),
    foreign(128, "DICM", "a DICOM picture"),
    foreign(0, "\x93NUMPY", "a NumPy array", Foreign::kNothing),
    foreign(0, "PK\3\4", "a ZIP archive (or .npz)", Foreign::kUnpack),
    foreign(0, "\x1F\x8B", "a gzip file", Foreign::kUnpack),
    foreign(0, "\x7F\x45LF", "a program or library", Foreign::kNothing),
};

// Of text without the spaces before it and in lower case.
constexpr std::array kForeignText = {
    foreign(0, "%pdf", "a PDF document"),
    foreign(0, "<svg", "an SVG drawing"),
    foreign(0, "<?xml", "an XML file (or SVG)"),
    foreign(0, "<!doctype", "an HTML page", Foreign::kDownload),
    foreign(0, "<html", "an HTML page", Foreign::kDownload),
    foreign(0, "#define ", "an XBM picture"),
    foreign(0, "version http", "a Git LFS pointer", Foreign::kFetch),
};

std::string_view words(decltype(Foreign::advice) advice) {
  switch (advice) {
    case Foreign::kConvert:
      return "; convert it to PNG";
    case Foreign::kMap:
      return "; map its values to 8 bits, as PNG";
    case Foreign::kTakeFrames:
      return "; take pictures out of it, as PNG";
    case Foreign::kUnpack:
      return "; unpack it";
    case Foreign::kDownload:
      return "; a server may have answered this: download the picture again";
    case Foreign::kFetch:
      return "; fetch it with `git lfs pull`";
    case Foreign::kNothing:
      break;
  }
  return "";
}

bool begins_with(Bytes file, std::size_t offset, std::string_view magic) {
  return file.size() >= offset + magic.size() &&
         std::equal(magic.begin(), magic.end(), file.begin() + static_cast<std::ptrdiff_t>(offset),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; });
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// How the file begins where it may be text, without the spaces before it.
std::string_view text_at_start(Bytes file) {
  constexpr std::size_t kLookedAt = 256;
  constexpr std::string_view kMark = "\xEF\xBB\xBF";  // of UTF-8
  std::string_view text(reinterpret_cast<const char*>(file.data()),
                        std::min(file.size(), kLookedAt));
  if (text.starts_with(kMark)) {
    text.remove_prefix(kMark.size());
  }
  return trimmed(text);
}

// ", but text: '<its first line>'", or nothing where it has what text has not.
std::string shown_text(std::string_view text) {
  constexpr std::size_t kShown = 60;
  const std::string_view line = text.substr(0, text.find_first_of("\r\n"));
  const bool is_text = !line.empty() && text.find('\0') == text.npos && is_utf8(line);
  return is_text ? ", but text: " + in_quotes(line, kShown) : "";
}

void refuse_where(bool is, const Foreign& foreign, const std::string& what) {
  if (is) {
    std::string hint(kReadable);
    hint += words(foreign.advice);
    throw Error(ErrorKind::kImage, what + ": this is " + foreign.name, hint);
  }
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
  const std::string extension = lower(std::filesystem::path(path).extension().string());
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
    refuse_where(begins_with(file, foreign.offset, {foreign.magic, foreign.size}), foreign, what);
  }
  const std::string_view text = text_at_start(file);
  const std::string beginning = lower(std::string(text));
  for (const Foreign& foreign : kForeignText) {
    refuse_where(beginning.starts_with(foreign.magic), foreign, what);
  }
  if (is_tga(file, path)) {
    return PictureFormat::kTga;
  }
  throw Error(ErrorKind::kImage,
              what + ": this is not a picture of a known format" + shown_text(text), kReadable);
}

}  // namespace run_model
