#include "preprocess/decoding/exif.h"

#include <gtest/gtest.h>

#include "preprocess/image_operations.h"
#include "tests/preprocess/fixtures.h"

namespace run_model {
namespace {

// One IFD entry for the orientation, as cameras write it.
std::vector<std::uint8_t> tiff(bool little, std::uint16_t type, std::uint32_t count,
                               std::uint32_t value) {
  std::vector<std::uint8_t> bytes = {little ? std::uint8_t{'I'} : std::uint8_t{'M'},
                                     little ? std::uint8_t{'I'} : std::uint8_t{'M'}};
  const auto put = [&](std::uint32_t number, int size) {
    for (int i = 0; i < size; ++i) {
      bytes.push_back(static_cast<std::uint8_t>(number >> (8 * (little ? i : size - 1 - i))));
    }
  };
  put(42, 2);
  put(8, 4);
  put(1, 2);
  put(0x0112, 2);
  put(type, 2);
  put(count, 4);
  const int size = type == 3 || type == 8 ? 2 : type == 1 || type == 6 ? 1 : 4;
  put(value, size);
  put(0, 4 - size);
  put(0, 4);
  return bytes;
}

TEST(Exif, ReadsBothByteOrdersAndAllIntegerTypes) {
  for (const bool little : {true, false}) {
    for (const std::uint16_t type : {3, 4, 6, 8, 9, 13}) {
      for (std::uint32_t value = 1; value <= 8; ++value) {
        EXPECT_EQ(orientation_of(tiff(little, type, 1, value)), static_cast<int>(value)) << type;
      }
    }
  }
}

TEST(Exif, OtherValuesAreNormal) {
  EXPECT_EQ(orientation_of(tiff(true, 3, 1, 0)), 1);
  EXPECT_EQ(orientation_of(tiff(true, 3, 1, 9)), 1);
  EXPECT_EQ(orientation_of(tiff(true, 1, 1, 6)), 1);  // bytes, which are no number for Pillow
  EXPECT_EQ(orientation_of(tiff(true, 2, 1, 6)), 1);
  EXPECT_EQ(orientation_of(tiff(true, 3, 0, 6)), 1);
  EXPECT_EQ(orientation_of({}), 1);
}

TEST(Exif, OfSeveralValuesTheFirstCounts) {
  EXPECT_EQ(orientation_of(tiff(true, 3, 2, 6)), 6);
  EXPECT_EQ(orientation_of(tiff(false, 8, 2, 6)), 6);
  // Four of 16 bits lie behind the directory, which ends at byte 26.
  for (const bool little : {true, false}) {
    std::vector<std::uint8_t> many = tiff(little, 4, 4, 26);
    many[little ? 12 : 13] = 3;
    many[little ? 13 : 12] = 0;
    EXPECT_EQ(orientation_of(many), 1) << little;  // which are not there
    for (int i = 0; i < 4; ++i) {
      many.insert(many.end(), {little ? std::uint8_t{8} : std::uint8_t{0},
                               little ? std::uint8_t{0} : std::uint8_t{8}});
    }
    EXPECT_EQ(orientation_of(many), 8) << little;
  }
}

TEST(Exif, DamagedBlocksAreNormal) {
  const std::vector<std::uint8_t> whole = tiff(true, 3, 1, 6);
  for (std::size_t size = 0; size < 22; ++size) {
    EXPECT_EQ(orientation_of(std::span(whole).first(size)), 1) << size;
  }
  std::vector<std::uint8_t> far = whole;
  far[4] = far[5] = far[6] = far[7] = 0xFF;
  EXPECT_EQ(orientation_of(far), 1);
}

TEST(Exif, TurnsPixels) {
  // The pixel at the left top, the right top and the left bottom of a 3 x 2 picture, after each
  // turn, from the table in the Exif standard (4.6.4, orientation).
  const Image image = fixtures::make_pattern(3, 2, 0);
  const struct {
    int orientation, width, left_top_x, left_top_y, right_top_x, right_top_y;
  } cases[] = {
      {1, 3, 0, 0, 2, 0}, {2, 3, 2, 0, 0, 0}, {3, 3, 2, 1, 0, 1}, {4, 3, 0, 1, 2, 1},
      {5, 2, 0, 0, 0, 1}, {6, 2, 0, 1, 0, 0}, {7, 2, 2, 1, 2, 0}, {8, 2, 2, 0, 2, 1},
  };
  for (const auto& expected : cases) {
    Image copy(3, 2);
    std::copy_n(image.data(), image.byte_count(), copy.data());
    const Image upright = apply_orientation(std::move(copy), expected.orientation);
    ASSERT_EQ(upright.width(), expected.width);
    const std::uint8_t* left = image.row(expected.left_top_y) + 3 * expected.left_top_x;
    const std::uint8_t* right = image.row(expected.right_top_y) + 3 * expected.right_top_x;
    EXPECT_TRUE(std::equal(left, left + 3, upright.row(0))) << expected.orientation;
    EXPECT_TRUE(std::equal(right, right + 3, upright.row(0) + 3 * (upright.width() - 1)))
        << expected.orientation;
  }
}

TEST(Exif, TurningBackGivesThePictureAgain) {
  const Image image = fixtures::make_pattern(71, 45, 0);
  const int inverse[] = {0, 1, 2, 3, 4, 5, 8, 7, 6};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    Image copy = fixtures::make_pattern(71, 45, 0);
    copy = apply_orientation(apply_orientation(std::move(copy), orientation), inverse[orientation]);
    EXPECT_EQ(fixtures::difference(copy, {image.data(), image.byte_count()}), "") << orientation;
  }
}

}  // namespace
}  // namespace run_model
