#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <zlib.h>

#include <array>

#include <run_model/decode.h>
#include <run_model/error.h>
#include "fixtures.h"

namespace run_model {
namespace {

using testing::HasSubstr;

using File = std::vector<std::uint8_t>;

void put_be(File& file, std::uint32_t value, int bytes) {
  while (bytes-- > 0) {
    file.push_back(static_cast<std::uint8_t>(value >> (8 * bytes)));
  }
}

void put_le(File& file, std::uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) {
    file.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
  }
}

void put_text(File& file, const std::string& text) {
  file.insert(file.end(), text.begin(), text.end());
}

void put_chunk(File& file, const std::string& type, const File& body) {
  put_be(file, static_cast<std::uint32_t>(body.size()), 4);
  const std::size_t start = file.size();
  put_text(file, type);
  file.insert(file.end(), body.begin(), body.end());
  put_be(file, fixtures::checksum({file.data() + start, file.size() - start}), 4);
}

// A PNG file, correct in all but the amount of its data.
File png(std::uint32_t width, std::uint32_t height, const File& raw,
         const File& kind = {8, 2, 0, 0, 0}) {
  File file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  File header;
  put_be(header, width, 4);
  put_be(header, height, 4);
  header.insert(header.end(), kind.begin(), kind.end());
  put_chunk(file, "IHDR", header);
  uLongf size = compressBound(raw.size());
  File packed(size);
  compress(packed.data(), &size, raw.data(), raw.size());
  packed.resize(size);
  put_chunk(file, "IDAT", packed);
  put_chunk(file, "IEND", {});
  return file;
}

File header_only(PictureFormat format, std::uint32_t width, std::uint32_t height) {
  File file;
  switch (format) {
    case PictureFormat::kPng:
      return png(width, height, {0, 0, 0, 0});
    case PictureFormat::kJpeg:
      file = {0xFF, 0xD8, 0xFF, 0xC0, 0, 11, 8};
      put_be(file, height, 2);
      put_be(file, width, 2);
      file.insert(file.end(), {1, 1, 0x11, 0, 0xFF, 0xD9});
      break;
    case PictureFormat::kBmp:
      put_text(file, "BM");
      for (const std::uint32_t field :
           {54U, 0U, 54U, 40U, width, height, 0x00180001U, 0U, 0U, 0U, 0U, 0U, 0U}) {
        put_le(file, field, 4);
      }
      break;
    case PictureFormat::kPnm:
      put_text(file, "P6 " + std::to_string(width) + " " + std::to_string(height) + " 255\n");
      break;
    case PictureFormat::kGif:
      put_text(file, "GIF89a");
      put_le(file, width, 2);
      put_le(file, height, 2);
      file.insert(file.end(), {0x80, 0, 0, 0, 0, 0, 1, 1, 1, 0x2C, 0, 0, 0, 0});
      put_le(file, width, 2);
      put_le(file, height, 2);
      file.insert(file.end(), {0, 2, 2, 0x44, 1, 0});
      break;
    case PictureFormat::kPsd:
      put_text(file, "8BPS");
      put_be(file, 1, 2);
      file.insert(file.end(), 6, 0);
      put_be(file, 3, 2);
      put_be(file, height, 4);
      put_be(file, width, 4);
      put_be(file, 0x00080003, 4);
      file.insert(file.end(), 14, 0);
      break;
    case PictureFormat::kTga:
      file = {0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0};
      put_le(file, width, 2);
      put_le(file, height, 2);
      file.insert(file.end(), {24, 0});
      break;
    case PictureFormat::kWebp:
      put_text(file, "RIFF");
      put_le(file, 60, 4);
      put_text(file, "WEBPVP8X");
      put_le(file, 10, 4);
      put_le(file, 2, 4);  // animated
      put_le(file, width - 1, 3);
      put_le(file, height - 1, 3);
      put_text(file, "ANMF");
      put_le(file, 30, 4);
      file.insert(file.end(), 16, 0);  // a frame of one pixel at the corner
      put_text(file, "VP8L");
      put_le(file, 5, 4);
      file.insert(file.end(), {0x2F, 0, 0, 0, 0, 0});
      break;
  }
  return file;
}

constexpr std::array kFormats = {PictureFormat::kPng, PictureFormat::kJpeg, PictureFormat::kBmp,
                                 PictureFormat::kPnm, PictureFormat::kGif,  PictureFormat::kPsd,
                                 PictureFormat::kTga, PictureFormat::kWebp};

std::string refusal(const File& file) {
  try {
    decode_picture(file, "picture.tga");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kImage) << error.what();
    return error.what();
  }
  return "";
}

long peak_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(Limits, AHugeHeaderIsRefusedBeforeAllocation) {
  const long before = peak_kilobytes();
  for (const PictureFormat format : kFormats) {
    SCOPED_TRACE(picture_format_name(format));
    // 65000 x 65000 pixels would take 12 GB.
    EXPECT_NE(refusal(header_only(format, 65000, 65000)), "");
  }
  EXPECT_THAT(refusal(header_only(PictureFormat::kPng, 100000, 100000)),
              HasSubstr("100000x100000 pixels, more than the limit of 128 megapixels"));
  EXPECT_LT(peak_kilobytes() - before, 100 * 1024);
}

TEST(Limits, AHeaderWithoutPixelsIsRefused) {
  for (const PictureFormat format : kFormats) {
    EXPECT_NE(refusal(header_only(format, 0, 10)), "") << picture_format_name(format);
    EXPECT_NE(refusal(header_only(format, 10, 0)), "") << picture_format_name(format);
    EXPECT_NE(refusal(header_only(format, 10, 10)), "")
        << picture_format_name(format) << " without data";
  }
}

TEST(Limits, APngOfAnUnknownKindIsRefused) {
  const File enough(100);
  for (std::uint8_t color = 0; color < 8; ++color) {
    for (std::uint8_t depth = 0; depth <= 17; ++depth) {
      // The combinations of the standard's table 11.1; a palette is not in this file.
      const bool whole = depth == 8 || depth == 16;
      const bool known = color == 0 ? whole || depth == 1 || depth == 2 || depth == 4
                                    : (color == 2 || color == 4 || color == 6) && whole;
      EXPECT_EQ(refusal(png(1, 1, enough, {depth, color, 0, 0, 0})).empty(), known)
          << int{depth} << " bits, colour type " << int{color};
    }
  }
  for (const File& kind : {File{8, 2, 1, 0, 0}, File{8, 2, 0, 1, 0}, File{8, 2, 0, 0, 2}}) {
    EXPECT_THAT(refusal(png(1, 1, enough, kind)), HasSubstr("its header has numbers"));
  }
}

TEST(Limits, APngForIPhonesIsNamed) {
  File file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
  put_chunk(file, "CgBI", {0x50, 0, 0x20, 2});
  EXPECT_THAT(refusal(file), HasSubstr("Apple"));
}

TEST(Limits, ASmallPngCannotUnpackToGigabytes) {
  const long before = peak_kilobytes();
  // 64 MB of zeros in 64 KB, where the header announces one pixel.
  const File file = png(1, 1, File(64 << 20));
  ASSERT_LT(file.size(), 100U << 10);
  const long file_made = peak_kilobytes();
  EXPECT_NE(refusal(file), "");
  EXPECT_LT(peak_kilobytes() - file_made, 32 * 1024) << "before the file: " << before;
}

}  // namespace
}  // namespace run_model
