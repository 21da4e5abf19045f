#include <run_model/decode.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <run_model/error.h>
#include "tests/preprocess/fixtures.h"

namespace run_model {
namespace {

TEST(Decode, EveryFormatEqualsPillow) {
  const nlohmann::json pictures = fixtures::pictures();
  ASSERT_GT(pictures.size(), 70U);
  for (const auto& expected : pictures) {
    const std::string name = expected["file"];
    SCOPED_TRACE(name);
    const Picture picture = load_picture(fixtures::data_path("pictures/" + name));
    EXPECT_EQ(picture.image.width(), expected["width"]);
    EXPECT_EQ(picture.image.height(), expected["height"]);
    EXPECT_EQ(fixtures::difference(picture.image, fixtures::from_hex(expected["pixels"])), "");
  }
}

TEST(Decode, TellsFormatChannelsAndOrientation) {
  const struct {
    const char* name;
    PictureFormat format;
    int channels;
    int orientation;
  } cases[] = {
      {"rgb8.png", PictureFormat::kPng, 3, 1},     {"rgba8.png", PictureFormat::kPng, 4, 1},
      {"gray8.png", PictureFormat::kPng, 1, 1},    {"gray_alpha8.png", PictureFormat::kPng, 2, 1},
      {"exif6.png", PictureFormat::kPng, 3, 6},    {"gray.jpg", PictureFormat::kJpeg, 1, 1},
      {"cmyk.jpg", PictureFormat::kJpeg, 4, 1},    {"orientation8.jpg", PictureFormat::kJpeg, 3, 8},
      {"rgb.bmp", PictureFormat::kBmp, 3, 1},      {"rgb.ppm", PictureFormat::kPnm, 3, 1},
      {"gray.pgm", PictureFormat::kPnm, 1, 1},     {"palette.gif", PictureFormat::kGif, 4, 1},
      {"rgba_rle.psd", PictureFormat::kPsd, 4, 1}, {"rle.tga", PictureFormat::kTga, 3, 1},
  };
  for (const auto& expected : cases) {
    const Picture picture =
        load_picture(fixtures::data_path(std::string("pictures/") + expected.name));
    EXPECT_EQ(picture.format, expected.format) << expected.name;
    EXPECT_EQ(picture.channels, expected.channels) << expected.name;
    EXPECT_EQ(picture.orientation, expected.orientation) << expected.name;
  }
}

TEST(Decode, TellsWhichLibraryWebpNeeds) {
  const auto load = [](const char* name) {
    return load_picture(fixtures::data_path(std::string("pictures/") + name));
  };
#ifdef EMULATED
  EXPECT_THROW(load("lossy.webp"), Error);
#else
  EXPECT_EQ(load("lossy.webp").format, PictureFormat::kWebp);
  EXPECT_EQ(load("lossless_rgba.webp").channels, 4);
  EXPECT_EQ(load("lossy_rgba.webp").channels, 4);
  EXPECT_EQ(load("exif6.webp").orientation, 6);
#endif
}

// What wrappers built on stb_image see of the same file; it differs by a few levels at most.
TEST(Decode, StbDecodesJpegWhereItIsAskedTo) {
  const std::string path = fixtures::data_path("pictures/orientation6.jpg");
  const Picture usual = load_picture(path);
  const Picture stb = load_picture(path, JpegDecoder::kStb);
  EXPECT_EQ(stb.orientation, 6);
  EXPECT_EQ(stb.channels, 3);
  ASSERT_EQ(stb.image.byte_count(), usual.image.byte_count());
  int largest = 0;
  for (std::size_t i = 0; i < stb.image.byte_count(); ++i) {
    largest = std::max(largest, std::abs(stb.image.data()[i] - usual.image.data()[i]));
  }
  EXPECT_GT(largest, 0);
  EXPECT_LE(largest, 8);
}

TEST(Decode, WhatFollowsThePictureIsIgnored) {
  for (const char* name : {"rgb8.png", "420.jpg", "palette.gif", "rgb.bmp", "rgb.ppm"}) {
    std::vector<std::uint8_t> file =
        fixtures::read_file(fixtures::data_path(std::string("pictures/") + name));
    const std::uint32_t intact = fixtures::checksum(decode_picture(file, name).image);
    file.insert(file.end(), 1000, 0xFF);
    EXPECT_EQ(fixtures::checksum(decode_picture(file, name).image), intact) << name;
  }
}

TEST(Decode, MissingFilesAndFoldersAreFileErrors) {
  const auto code = [](const std::string& path) {
    try {
      load_picture(path);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
      return error.kind();
    }
    return ErrorKind::kInternal;
  };
  EXPECT_EQ(code(fixtures::data_path("no_such.png")), ErrorKind::kFile);
  EXPECT_EQ(code(fixtures::data_path("pictures")), ErrorKind::kFile);
  EXPECT_EQ(code(fixtures::data_path("resize.tsv")), ErrorKind::kImage);
}

using testing::HasSubstr;
using namespace std::string_view_literals;

// The message with which `contents` are refused; empty when they are not.
std::string refusal(std::string_view contents, const std::string& path = "picture") {
  try {
    decode_picture({reinterpret_cast<const std::uint8_t*>(contents.data()), contents.size()}, path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kImage);
    return error.what();
  }
  return "";
}

TEST(Format, ForeignFilesAreNamed) {
  const struct {
    std::string_view contents;
    const char* name;
  } cases[] = {
      {"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n\1\1\1\1"sv, "Radiance HDR"},
      {"II*\0\x08\0\0\0"sv, "TIFF"},
      {"\0\0\0\x1c"
       "ftypavif"sv,
       "AVIF"},
      {"\0\0\0\x18"
       "ftypheic"sv,
       "HEIF"},
      {"\0\0\0\x18"
       "ftypisom"sv,
       "a video; PNG, JPEG, WebP, BMP, PNM, GIF, PSD and TGA pictures can be read; take "
       "pictures out"},
      {"II+\0\x08\0\0\0"sv, "BigTIFF"},
      {"\xFF\x4F\xFF\x51\0\x2F"sv, "JPEG 2000"},
      {"qoif\0\0\0\1\0\0\0\1\3\0"sv, "QOI picture"},
      {"DDS |\0\0\0"sv, "DDS"},
      {"\x01\xDA\1\1\0\3"sv, "SGI"},
      {"\x0A\5\1\x08\0\0"sv, "PCX"},
      {"v/1\1\2\0\0\0"sv, "OpenEXR"},
      {"\0\0\1\0\1\0"sv, "icon"},
      {"#define im_width 9\n#define im_height 13\n"sv, "XBM picture"},
      {"\x93NUMPY\1\0"sv, "NumPy"},
      {"\x7F"
       "ELF\2\1\1"sv,
       "library"},
      {"PK\3\4rest"sv,
       "ZIP archive (or .npz); PNG, JPEG, WebP, BMP, PNM, GIF, PSD and TGA pictures "
       "can be read; unpack it"},
      {"<svg xmlns="sv, "SVG"},
      {"%PDF-1.4\n%\xE2\xE3\xCF\xD3\n"sv, "PDF document"},
      {"\xEF\xBB\xBF\r\n <!doctype HTML>\n<html>"sv, "an HTML page"},
      {"<HTML><head>"sv, "download the picture again"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:"sv, "git lfs pull"},
      {""sv, "empty"},
      {"n01440764 tench\nn01443537 goldfish\n"sv,
       "not a picture of a known format, but text: 'n01440764 tench'"},
      {"text\n\1\0\3"sv, "not a picture of a known format; "},
      {"text \x80"sv, "not a picture of a known format; "},
  };
  for (const auto& expected : cases) {
    EXPECT_THAT(refusal(expected.contents), HasSubstr(expected.name));
  }
  std::string dicom(128, '\0');
  EXPECT_THAT(refusal(dicom + "DICM\2"), HasSubstr("DICOM"));
}

TEST(Format, TgaIsTakenByNameOrFooterOnly) {
  const std::vector<std::uint8_t> file =
      fixtures::read_file(fixtures::data_path("pictures/rgb.tga"));
  std::string contents(file.begin(), file.end());
  ASSERT_TRUE(contents.ends_with("TRUEVISION-XFILE.\0"sv));
  EXPECT_EQ(refusal(contents), "");
  contents.resize(18 + 13 * 9 * 3);
  EXPECT_THAT(refusal(contents, "picture.bin"), HasSubstr("not a picture of a known format"));
  EXPECT_EQ(refusal(contents, "PICTURE.TGA"), "");
}

TEST(Format, UnsupportedVariantsAreRefused) {
  const auto patched = [](const char* name, std::size_t offset, char value) {
    const std::vector<std::uint8_t> file =
        fixtures::read_file(fixtures::data_path(std::string("pictures/") + name));
    std::string contents(file.begin(), file.end());
    contents.at(offset) = value;
    return contents;
  };
  EXPECT_THAT(refusal(patched("rgb.bmp", 30, 1)), HasSubstr("24 bits a pixel with compression 1"));
  EXPECT_THAT(refusal(patched("palette.tga", 3, 1), "x.tga"), HasSubstr("palette"));
  EXPECT_THAT(refusal(patched("rgb.psd", 25, 4)), HasSubstr("RGB"));
  EXPECT_THAT(refusal(patched("rgb.psd", 13, 2)), HasSubstr("2 of three colours"));
}

TEST(Format, ControlCharactersOfANameDoNotReachTheTerminal) {
  EXPECT_THAT(refusal("", "a\x1b[31mb.png"), HasSubstr("'a\\x1b[31mb.png'"));
}

}  // namespace
}  // namespace run_model
