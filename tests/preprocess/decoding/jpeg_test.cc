#include "preprocess/decoding/decoders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>

#include <run_model/error.h>
#include "base/sha256.h"
#include "tests/preprocess/fixtures.h"

namespace run_model {
namespace {

using testing::HasSubstr;

using File = std::vector<std::uint8_t>;

File picture(const std::string& name) {
  return fixtures::read_file(fixtures::data_path("pictures/" + name));
}

std::string jpeg_refusal(const File& file) {
  try {
    decode_jpeg(file, "picture");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kImage);
    return error.what();
  }
  return "";
}

std::size_t find_marker(const File& file, std::uint8_t marker, std::size_t from = 0) {
  const std::array<std::uint8_t, 2> bytes = {0xFF, marker};
  const auto found = std::search(file.begin() + static_cast<std::ptrdiff_t>(from), file.end(),
                                 bytes.begin(), bytes.end());
  EXPECT_NE(found, file.end());
  return static_cast<std::size_t>(found - file.begin());
}

std::string pixel_hash(const Image& image) {
  return sha256_hex(std::as_bytes(std::span(image.data(), image.byte_count())));
}

// Bit for bit, on every CPU: pictures.json has one of each format, jpegs.json varies what JPEG can.
TEST(Jpeg, EveryVariantEqualsPillow) {
  const nlohmann::json variants = fixtures::read_json("jpegs.json");
  ASSERT_GT(variants.size(), 100U);
  for (const auto& variant : variants) {
    SCOPED_TRACE(variant["name"]);
    const RawPicture picture = decode_jpeg(fixtures::from_hex(variant["file"]), "picture");
    EXPECT_EQ(picture.image.width(), variant["width"]);
    EXPECT_EQ(picture.image.height(), variant["height"]);
    EXPECT_EQ(pixel_hash(picture.image), variant["sha256"]);
  }
}

TEST(Jpeg, APhotographEqualsPillow) {
  const File golden =
      fixtures::read_file(fixtures::source_path("artifacts/golden/squeezenet1_1/rocket.json"));
  const File photograph = fixtures::read_file(fixtures::source_path("images/rocket.jpg"));
  EXPECT_EQ(pixel_hash(decode_jpeg(photograph, "picture").image),
            nlohmann::json::parse(golden)["picture"]["rgb_sha256"]);
}

// What a download tool or a camera leaves behind: the end of the data is missing, the end marker is
// there.
TEST(Jpeg, AnEndMarkerDoesNotHideMissingData) {
  for (const char* name :
       {"444.jpg", "420.jpg", "gray.jpg", "restart.jpg", "cmyk.jpg", "progressive.jpg",
        "progressive_gray.jpg", "progressive_restart.jpg", "sampling_1x2_2x1_1x1.jpg"}) {
    const File file = picture(name);
    const std::size_t scan = find_marker(file, 0xDA);
    for (std::size_t size = scan + 16; size + 4 < file.size(); ++size) {
      File cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
      cut.insert(cut.end(), {0xFF, 0xD9});
      EXPECT_NE(jpeg_refusal(cut), "")
          << name << " cut off after " << size << " of " << file.size();
    }
  }
}

TEST(Jpeg, RestartMarkersAreCounted) {
  const File file = picture("restart.jpg");
  const std::size_t first = find_marker(file, 0xD0);
  File missing = file;
  missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(first),
                missing.begin() + static_cast<std::ptrdiff_t>(first) + 2);
  EXPECT_NE(jpeg_refusal(missing), "");
  File swapped = file;
  swapped[first + 1] = 0xD3;
  EXPECT_THAT(jpeg_refusal(swapped),
              HasSubstr("Corrupt JPEG data: found marker 0xd3 instead of RST0"));
  File surplus = file;
  surplus.insert(surplus.end() - 2, {0xFF, 0xD5});
  EXPECT_THAT(jpeg_refusal(surplus), HasSubstr("more restart markers"));
}

TEST(Jpeg, OtherKindsOfJpegAreNamed) {
  File lossless = picture("444.jpg");
  lossless[find_marker(lossless, 0xC0) + 1] = 0xC3;
  EXPECT_THAT(jpeg_refusal(lossless), HasSubstr("SOF3 (lossless or hierarchical)"));
  lossless[find_marker(lossless, 0xC3) + 1] = 0xF7;
  EXPECT_THAT(jpeg_refusal(lossless), HasSubstr("is of kind JPEG-LS"));
  File deep = picture("444.jpg");
  deep[find_marker(deep, 0xC0) + 4] = 12;
  EXPECT_THAT(jpeg_refusal(deep), HasSubstr("12 bits a sample"));
  File two_components = picture("gray.jpg");
  const std::size_t frame = find_marker(two_components, 0xC0);
  two_components[frame + 3] = 14;
  two_components[frame + 9] = 2;
  const std::array<std::uint8_t, 3> component = {2, 0x11, 0};
  two_components.insert(two_components.begin() + static_cast<std::ptrdiff_t>(frame) + 13,
                        component.begin(), component.end());
  EXPECT_THAT(jpeg_refusal(two_components), HasSubstr("it has 2 colour components"));
}

TEST(Jpeg, AWarningIsAnError) {
  File file = picture("progressive.jpg");
  const std::size_t second_scan = find_marker(file, 0xDA, find_marker(file, 0xDA) + 2);
  const std::array<std::uint8_t, 3> stray = {1, 2, 3};
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(second_scan), stray.begin(), stray.end());
  EXPECT_THAT(jpeg_refusal(file),
              HasSubstr("Corrupt JPEG data: 3 extraneous bytes before marker 0xda"));
  // Zeros are padding, and what else is left over shows that the codes are not those written.
  File left_over = picture("444.jpg");
  left_over.insert(left_over.end() - 2, 40, 0);
  EXPECT_EQ(jpeg_refusal(left_over), "");
  left_over[left_over.size() - 5] = 1;
  EXPECT_THAT(jpeg_refusal(left_over), HasSubstr("extraneous bytes before marker 0xd9"));
}

// A damaged length makes what follows a segment no segment: other readers pass over it.
TEST(Jpeg, ATableAmongStrayBytesIsMissed) {
  File file = picture("420.jpg");
  file[find_marker(file, 0xC4)] = 0;
  EXPECT_THAT(jpeg_refusal(file), HasSubstr("lacks a Huffman table"));
}

TEST(Jpeg, AMissingColorComponentIsNoticed) {
  // The frame of a colour picture before the scan of a grey one.
  File file = picture("gray.jpg");
  const std::size_t frame = find_marker(file, 0xC0);
  file[frame + 3] = 17;
  file[frame + 9] = 3;
  const std::array<std::uint8_t, 6> components = {2, 0x11, 0, 3, 0x11, 0};
  file.insert(file.begin() + static_cast<std::ptrdiff_t>(frame) + 13, components.begin(),
              components.end());
  EXPECT_THAT(jpeg_refusal(file), HasSubstr("before all its colour components"));
}

// One grey block, each bit of each coefficient in a scan of its own that says "all zero".
File many_scans(int coefficients) {
  constexpr int kFirstBit = 13;
  File file = {0xFF, 0xD8, 0xFF, 0xDB, 0, 67, 0};
  file.insert(file.end(), 64, 1);
  const File frame = {0xFF, 0xC2, 0, 11, 8, 0, 8, 0, 8, 1, 1, 0x11, 0};
  file.insert(file.end(), frame.begin(), frame.end());
  for (const std::uint8_t table : {0x00, 0x10}) {  // the code 0 for the symbol 0
    const File header = {0xFF, 0xC4, 0, 20, table, 1};
    file.insert(file.end(), header.begin(), header.end());
    file.insert(file.end(), 16, 0);
  }
  const auto scan = [&](int coefficient, int approximation) {
    const auto k = static_cast<std::uint8_t>(coefficient);
    const auto bits = static_cast<std::uint8_t>(approximation);
    const File bytes = {0xFF, 0xDA, 0, 8, 1, 1, 0, k, k, bits, 0x7F};
    file.insert(file.end(), bytes.begin(), bytes.end());
  };
  scan(0, 0);
  for (int k = 1; k <= coefficients; ++k) {
    scan(k, kFirstBit);
    for (int bit = kFirstBit; bit > 0; --bit) {
      scan(k, bit << 4 | (bit - 1));
    }
  }
  file.insert(file.end(), {0xFF, 0xD9});
  return file;
}

TEST(Jpeg, ManyScansAreRefused) {
  EXPECT_EQ(jpeg_refusal(many_scans(35)), "");  // 491 scans
  EXPECT_THAT(jpeg_refusal(many_scans(36)), HasSubstr("more than 500 scans"));
}

// A coefficient of which some bits never came, which libjpeg would guess.
TEST(Jpeg, AScanThatNeverCameIsNoticed) {
  EXPECT_THAT(jpeg_refusal(many_scans(8)), HasSubstr("before the last scan of a colour component"));
}

// The array for the coefficients of 123 megapixels would take 246 MB.
TEST(Jpeg, AHugeProgressivePictureWithoutDataTakesNoMemory) {
  File file = many_scans(9);
  const std::size_t frame = find_marker(file, 0xC2);
  file[frame + 5] = 0xFD;  // 64768 x 1896
  file[frame + 6] = 0x00;
  file[frame + 7] = 0x07;
  file[frame + 8] = 0x68;
  rusage before{};
  getrusage(RUSAGE_SELF, &before);
  EXPECT_THAT(jpeg_refusal(file), HasSubstr("damaged"));
  rusage after{};
  getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 32 * 1024);
}

}  // namespace
}  // namespace run_model
