#include <run_model/resize.h>

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>

#include <run_model/error.h>
#include "fixtures.h"
#include "preprocess/resizers.h"

namespace run_model {
namespace {

// Emulators make it slow to build the patterns: every seventh line has all resizers too.
#ifdef EMULATED
constexpr int kEvery = 7;
#else
constexpr int kEvery = 1;
#endif

// Each line of resize.tsv: the checksum of what Pillow, OpenCV or NumPy made of the same pattern.
TEST(Resize, EqualsTheOriginalsOverASweepOfSizes) {
  std::ifstream table(fixtures::data_path("resize.tsv"));
  std::string line;
  int cases = 0;
  while (std::getline(table, line)) {
    if (line.empty() || line.front() == '#') {
      continue;
    }
    if (cases++ % kEvery != 0) {
      continue;
    }
    std::istringstream fields(line);
    std::string resizer;
    int source_width = 0;
    int source_height = 0;
    int width = 0;
    int height = 0;
    std::uint32_t seed = 0;
    std::uint32_t expected = 0;
    fields >> resizer >> source_width >> source_height >> width >> height >> seed >> std::hex >>
        expected;
    ASSERT_TRUE(fields) << line;
    const Image source = fixtures::make_pattern(source_width, source_height, seed);
    const Image resized = resize(source, width, height, parse_resizer(resizer));
    EXPECT_EQ(fixtures::checksum(resized), expected) << line;
  }
  EXPECT_GT(cases, 2700);
}

TEST(Resize, EqualsTheOriginalsPixelByPixel) {
  for (const auto& entry : fixtures::read_json("pixels.json")) {
    const Image source =
        fixtures::make_pattern(entry["source"][0], entry["source"][1], entry["seed"]);
    const Image resized = resize(source, entry["target"][0], entry["target"][1],
                                 parse_resizer(entry["resizer"].get<std::string>()));
    EXPECT_EQ(fixtures::difference(resized, fixtures::from_hex(entry["pixels"])), "")
        << entry["resizer"] << entry["source"] << " to " << entry["target"];
  }
}

// OpenCV's warpPerspective of regions that are turned, and reach beyond the picture.
TEST(Warp, EqualsOpenCvOnRegions) {
  const auto cases = fixtures::read_json("regions.json");
  EXPECT_EQ(cases.size(), 120U);
  for (const auto& entry : cases) {
    const Image source =
        fixtures::make_pattern(entry["source"][0], entry["source"][1], entry["seed"]);
    const auto& r = entry["region"];
    const PictureRegion region{r[0], r[1], r[2], r[3], r[4]};
    const int width = entry["target"][0], height = entry["target"][1];
    std::optional<std::uint8_t> outside;
    if (entry["outside"].is_number()) outside = entry["outside"].get<std::uint8_t>();
    const Image made =
        warp_cv2_linear(source, region, width, height, outside, {0, 0, width, height});
    EXPECT_EQ(fixtures::checksum(made), std::stoul(entry["crc32"].get<std::string>(), nullptr, 16))
        << entry;
  }
}

class EveryResizer : public testing::TestWithParam<Resizer> {};

INSTANTIATE_TEST_SUITE_P(All, EveryResizer,
                         testing::Values(Resizer::kNearest, Resizer::kPilBilinear,
                                         Resizer::kPilBicubic, Resizer::kPilNearest,
                                         Resizer::kPil13Bilinear, Resizer::kPil13Bicubic,
                                         Resizer::kCv2Linear, Resizer::kCv2Warp));

TEST_P(EveryResizer, AWindowIsACropOfTheWhole) {
  const struct {
    int source_width, source_height, width, height;
  } sizes[] = {{90, 70, 40, 30}, {31, 17, 64, 55}, {60, 40, 30, 20}, {40, 40, 40, 13},
               {40, 40, 9, 40},  {40, 40, 40, 40}, {1, 50, 7, 350},  {50, 90, 45, 60}};
  for (const auto& size : sizes) {
    const Image source = fixtures::make_pattern(size.source_width, size.source_height, 3);
    const Image whole = resize(source, size.width, size.height, GetParam());
    const Region windows[] = {{0, 0, 1, 1},
                              {size.width - 1, size.height - 1, 1, 1},
                              {size.width / 3, size.height / 4, size.width / 2, size.height / 2},
                              {0, size.height / 2, size.width, size.height / 3}};
    for (const Region& window : windows) {
      const Image part = resize(source, size.width, size.height, GetParam(), window);
      for (int y = 0; y < window.height; ++y) {
        const std::uint8_t* expected = whole.row(window.y + y) + window.x * kImageChannels;
        EXPECT_TRUE(std::equal(expected, expected + part.row_bytes(), part.row(y)))
            << size.source_width << "x" << size.source_height << " to " << size.width << "x"
            << size.height << ", row " << y << " of the window at " << window.x << "," << window.y;
      }
    }
  }
}

TEST_P(EveryResizer, OneColorStaysThatColor) {
  Image source(37, 23);
  std::fill_n(source.data(), source.byte_count(), std::uint8_t{201});
  for (const int side : {1, 5, 37, 80}) {
    const Image resized = resize(source, side, side + 2, GetParam());
    const std::vector<std::uint8_t> expected(resized.byte_count(), 201);
    EXPECT_EQ(fixtures::difference(resized, expected), "") << side;
  }
}

TEST_P(EveryResizer, ALongPictureCostsOnlyItsWindow) {
  // Resized as a whole this would take 4 GB.
  const Image source = fixtures::make_pattern(1, 20000, 1);
  const Image part = resize(source, 256, 5120000, GetParam(), {16, 2559888, 224, 224});
  EXPECT_EQ(part.width(), 224);
  EXPECT_EQ(part.height(), 224);
}

TEST_P(EveryResizer, TwiceTheTargetMayBeMoreThanAnIntHolds) {
  Image source(4, 4);
  std::fill_n(source.data(), source.byte_count(), std::uint8_t{77});
  constexpr int kSide = (1 << 30) + 8;
  const Image part = resize(source, kSide, kSide, GetParam(), {kSide - 3, kSide - 2, 3, 2});
  EXPECT_EQ(fixtures::difference(part, std::vector<std::uint8_t>(part.byte_count(), 77)), "");
}

TEST_P(EveryResizer, NamesAreParsed) {
  EXPECT_EQ(parse_resizer(resizer_name(GetParam())), GetParam());
}

TEST_P(EveryResizer, RefusesAWindowOutside) {
  const Image source = fixtures::make_pattern(8, 8, 0);
  for (const Region& window :
       {Region{-1, 0, 2, 2}, Region{0, 3, 2, 2}, Region{0, 0, 5, 1}, Region{0, 0, 0, 1}}) {
    EXPECT_THROW(resize(source, 4, 4, GetParam(), window), Error);
  }
}

TEST_P(EveryResizer, RefusesPicturesBeyondTheLimits) {
  const auto kind = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::kInternal;
  };
  const Image source = fixtures::make_pattern(8, 8, 0);
  EXPECT_EQ(kind([] { resize(Image(), 4, 4, GetParam()); }), ErrorKind::kImage);
  EXPECT_EQ(kind([&] { resize(source, 1 << 30, 1 << 30, GetParam()); }), ErrorKind::kImage);
}

TEST(Resize, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  try {
    parse_resizer("bilinear");
    FAIL() << "'bilinear' names no resizer";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
    EXPECT_STREQ(error.what(),
                 "unknown resizer 'bilinear'; it is one of nearest, pil-bilinear, pil-bicubic, "
                 "pil-nearest, pil13-bilinear, pil13-bicubic, cv2-linear, cv2-warp");
  }
}

}  // namespace
}  // namespace run_model
