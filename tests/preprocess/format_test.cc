#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include <run_model/decode.h>
#include <run_model/error.h>
#include "fixtures.h"

namespace run_model {
namespace {

using testing::HasSubstr;
using namespace std::string_view_literals;

// The message with which `contents` are refused; empty when they are not.
std::string format_refusal(std::string_view contents, const std::string& path = "picture") {
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
      {"RIFF\x10\0\0\0WEBPVP8 "sv, "WebP"},
      {"II*\0\x08\0\0\0"sv, "TIFF"},
      {"\0\0\0\x1c"
       "ftypavif"sv,
       "AVIF"},
      {"\0\0\0\x18"
       "ftypheic"sv,
       "HEIF"},
      {"\x93NUMPY\1\0"sv, "NumPy"},
      {"\x7F"
       "ELF\2\1\1"sv,
       "library"},
      {"PK\3\4rest"sv, "ZIP"},
      {"<svg xmlns="sv, "SVG"},
      {""sv, "empty"},
      {"n01440764 tench\n"sv, "not a picture of a known format"},
  };
  for (const auto& expected : cases) {
    EXPECT_THAT(format_refusal(expected.contents), HasSubstr(expected.name));
  }
}

TEST(Format, TgaIsTakenByNameOrFooterOnly) {
  const std::vector<std::uint8_t> file =
      fixtures::read_file(fixtures::data_path("pictures/rgb.tga"));
  std::string contents(file.begin(), file.end());
  ASSERT_TRUE(contents.ends_with("TRUEVISION-XFILE.\0"sv));
  EXPECT_EQ(format_refusal(contents), "");
  contents.resize(18 + 13 * 9 * 3);
  EXPECT_THAT(format_refusal(contents, "picture.bin"),
              HasSubstr("not a picture of a known format"));
  EXPECT_EQ(format_refusal(contents, "PICTURE.TGA"), "");
}

TEST(Format, UnsupportedVariantsAreRefused) {
  const auto patched = [](const char* name, std::size_t offset, char value) {
    const std::vector<std::uint8_t> file =
        fixtures::read_file(fixtures::data_path(std::string("pictures/") + name));
    std::string contents(file.begin(), file.end());
    contents.at(offset) = value;
    return contents;
  };
  EXPECT_THAT(format_refusal(patched("rgb.bmp", 30, 1)), HasSubstr("RLE"));
  EXPECT_THAT(format_refusal(patched("palette.tga", 3, 1), "x.tga"), HasSubstr("palette"));
  EXPECT_THAT(format_refusal(patched("rgb.psd", 25, 4)), HasSubstr("RGB"));
}

TEST(Format, ControlCharactersOfANameDoNotReachTheTerminal) {
  EXPECT_THAT(format_refusal("", "a\x1b[31mb.png"), HasSubstr("'a\\x1b[31mb.png'"));
}

}  // namespace
}  // namespace run_model
