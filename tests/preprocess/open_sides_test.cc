#include "preprocess/open_sides.h"

#include <gtest/gtest.h>

#include <run_model/error.h>
#include "tests/throws_error.h"

namespace run_model {
namespace {

const TensorInfo kOpen{"x", {1, 3, 1, 1}, {kDLFloat, 32, 1}, {"", "", "h", "w"}};
const TensorInfo kFixed{"x", {1, 240, 320, 3}, {kDLFloat, 32, 1}, {}};

TEST(OpenSidesTest, TakeTheSize) {
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(shape_with_sides(kOpen, Layout::kNchw, {{320, 240}}), (Shape{1, 3, 240, 320}));
  EXPECT_EQ(shape_with_sides(kFixed, Layout::kNhwc, {{320, 240}}), kFixed.shape);
  EXPECT_EQ(shape_with_sides(kFixed, Layout::kNhwc, std::nullopt), kFixed.shape);
}

TEST(OpenSidesTest, NeedOneThatFits) {
  EXPECT_TRUE(throws_error([] { shape_with_sides(kOpen, Layout::kNchw, std::nullopt); },
                           ErrorKind::kMismatch, "input 'x' has any height"));
  EXPECT_TRUE(throws_error([] { shape_with_sides(kOpen, Layout::kNchw, {{0, 240}}); },
                           ErrorKind::kMismatch, "width of 0"));
  EXPECT_TRUE(throws_error([] { shape_with_sides(kFixed, Layout::kNhwc, {{320, 320}}); },
                           ErrorKind::kMismatch,
                           "height of 320, and the model's input 'x' one of "
                           "240"));
}

TEST(OpenSidesTest, ACropOfAnotherSizeKeepsItsProportion) {
  Preprocessing preprocessing;
  preprocessing.crop = 224;
  EXPECT_EQ(resize_for_side(preprocessing, 448), 512);
  preprocessing.crop = 0;  // which fits any
  EXPECT_EQ(resize_for_side(preprocessing, 448), 256);
}

}  // namespace
}  // namespace run_model
