#include <run_model/geometry.h>

#include <gtest/gtest.h>

#include <cmath>

#include <run_model/error.h>

namespace run_model {
namespace {

// Values worked out with Python's int() and round() from torchvision's formulas.
TEST(Geometry, CropFollowsTorchvision) {
  const struct {
    int width, height, resize, crop, resized_width, resized_height, x, y;
  } cases[] = {
      {1200, 1200, 256, 224, 256, 256, 16, 16}, {451, 300, 256, 224, 384, 256, 80, 16},
      {300, 451, 256, 224, 256, 384, 16, 80},   {640, 427, 256, 224, 383, 256, 80, 16},
      {224, 224, 224, 224, 224, 224, 0, 0},     {1, 7, 256, 224, 256, 1792, 16, 784},
      {10, 11, 65, 64, 65, 71, 0, 4},           {11, 10, 67, 64, 73, 67, 4, 2},
  };
  for (const auto& c : cases) {
    const Geometry geometry = crop_geometry(c.width, c.height, c.resize, c.crop, c.crop);
    EXPECT_EQ(geometry.resized_width, c.resized_width) << c.width << "x" << c.height;
    EXPECT_EQ(geometry.resized_height, c.resized_height) << c.width << "x" << c.height;
    EXPECT_EQ(geometry.window, (Region{c.x, c.y, c.crop, c.crop})) << c.width << "x" << c.height;
  }
}

// Half of the missing pixels, rounded down, comes first.
TEST(Geometry, PaddingReachesTheProportions) {
  const Padding wide = aspect_padding(101, 50, 64, 64);
  EXPECT_EQ(wide.top, 25);
  EXPECT_EQ(wide.height, 101);
  EXPECT_EQ(wide.width, 101);
  const Padding tall = aspect_padding(10, 100, 64, 32);
  EXPECT_EQ(tall.left, 95);
  EXPECT_EQ(tall.width, 200);
  EXPECT_EQ(aspect_padding(40, 20, 64, 32).width, 40);
  EXPECT_THROW(aspect_padding(65535, 1, 1, 2), Error);
  EXPECT_THROW(aspect_padding(65535, 1, 1, 1), Error);
  EXPECT_THROW(aspect_padding(16000, 7000, 1, 1), Error);
}

// 67 - 64 is 3: Python's round(1.5) is 2, and 3 // 2 is 1.
TEST(Geometry, ACropMayBeginHalfAPixelBefore) {
  EXPECT_EQ(crop_geometry(67, 67, 67, 64, 64).window, (Region{2, 2, 64, 64}));
  EXPECT_EQ(crop_geometry(67, 67, 67, 64, 64, CropStart::kDown).window, (Region{1, 1, 64, 64}));
  const Geometry squashed = squash_crop_geometry(67, 64, 62, CropStart::kDown);
  EXPECT_EQ(squashed.resized_width, 67);
  EXPECT_EQ(squashed.resized_height, 67);
  EXPECT_EQ(squashed.window, (Region{1, 2, 64, 62}));
  EXPECT_EQ(squash_crop_geometry(67, 64, 62).window, (Region{2, 2, 64, 62}));
  EXPECT_THROW(squash_crop_geometry(63, 64, 64), Error);
}

TEST(Geometry, CropMayBeOblong) {
  const Geometry geometry = crop_geometry(200, 100, 50, 80, 40);
  EXPECT_EQ(geometry.window, (Region{10, 5, 80, 40}));
}

TEST(Geometry, ACropLargerThanThePictureIsRefused) {
  EXPECT_THROW(crop_geometry(100, 100, 200, 224, 224), Error);
  EXPECT_THROW(crop_geometry(100, 200, 224, 225, 100), Error);
}

TEST(Geometry, APictureTooLongToIndexIsRefused) {
  EXPECT_NO_THROW(crop_geometry(1, 65535, 256, 224, 224));
  EXPECT_THROW(crop_geometry(1, 65535, 65535, 224, 224), Error);
}

TEST(Geometry, LetterboxKeepsProportionsAndPadsBehind) {
  const Geometry wide = letterbox_geometry(451, 300, 224, 224);
  EXPECT_EQ(wide.resized_width, 224);
  EXPECT_EQ(wide.resized_height, 149);
  EXPECT_EQ(wide.pad_left, 0);
  EXPECT_EQ(wide.pad_top, 37);
  const Geometry tall = letterbox_geometry(10, 1000, 64, 32);
  EXPECT_EQ(tall.resized_width, 1);
  EXPECT_EQ(tall.resized_height, 32);
  EXPECT_EQ(tall.pad_left, 31);
}

// YOLOX's: nothing before the picture, and 302 * 224 / 451 = 149.996.
TEST(Geometry, LetterboxMayBeginAtTheCornerAndCutOff) {
  const Geometry start = letterbox_geometry(451, 300, 224, 224, {true, false});
  EXPECT_EQ(start.pad_top, 0);
  EXPECT_EQ(start.resized_height, 149);
  EXPECT_EQ(letterbox_geometry(451, 302, 224, 224, {false, false}).resized_height, 150);
  EXPECT_EQ(letterbox_geometry(451, 302, 224, 224, {false, true}).resized_height, 149);
}

TEST(Geometry, RegionsThatCannotBeSeenAreRefused) {
  EXPECT_NO_THROW(check_region({-10, -10, 20, 20}, 100, 50));
  EXPECT_NO_THROW(check_region({-19, 0, 20, 20, 30}, 100, 50));
  for (const PictureRegion& region :
       {PictureRegion{-20, 0, 20, 20}, PictureRegion{100, 0, 20, 20}, PictureRegion{0, 50, 9, 9},
        PictureRegion{0, 0, 0.5, 9}, PictureRegion{0, 0, 9, 70000}, PictureRegion{0, 0, -3, 9},
        PictureRegion{std::nan(""), 0, 9, 9}, PictureRegion{0, 0, 9, 9, INFINITY}}) {
    EXPECT_THROW(check_region(region, 100, 50), Error)
        << region.x << " " << region.y << " " << region.width << " " << region.height;
  }
}

TEST(Geometry, SquashTakesEverything) {
  const Geometry geometry = squash_geometry(30, 20);
  EXPECT_EQ(geometry.window, (Region{0, 0, 30, 20}));
}

TEST(Geometry, NamesAreParsed) {
  for (const Fit fit : {Fit::kCrop, Fit::kSquash, Fit::kLetterbox, Fit::kPad, Fit::kSquashCrop}) {
    EXPECT_EQ(parse_fit(fit_name(fit)), fit);
  }
  EXPECT_THROW(parse_fit("center"), Error);
}

}  // namespace
}  // namespace run_model
