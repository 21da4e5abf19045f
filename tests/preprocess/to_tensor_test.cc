#include "preprocess/to_tensor.h"

#include <gtest/gtest.h>

#include <run_model/error.h>
#include "fixtures.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

constexpr DLDataType kFloat32{kDLFloat, 32, 1};

Image two_pixels() {
  Image image(2, 1);
  const std::uint8_t bytes[] = {10, 20, 30, 200, 100, 50};
  std::copy(std::begin(bytes), std::end(bytes), image.data());
  return image;
}

// --bgr --no-normalize --mean 104 117 123: 104 is subtracted from blue, as Caffe does.
TEST(ToTensor, MeanIsInTheNetworksChannelOrder) {
  Preprocessing caffe;
  caffe.color_order = ColorOrder::kBgr;
  caffe.mean = {104, 117, 123};
  const Tensor tensor = Tensor::empty({1, 3, 1, 2}, kFloat32);
  write_tensor(two_pixels(), caffe, Layout::kNchw, tensor);
  const auto values = tensor.elements<float>();
  const std::vector<float> expected = {30 - 104,  50 - 104, 20 - 117,
                                       100 - 117, 10 - 123, 200 - 123};
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()), expected);
}

TEST(ToTensor, NhwcKeepsTheChannelsOfAPixelTogether) {
  const Tensor tensor = Tensor::empty({1, 1, 2, 3}, kFloat32);
  write_tensor(two_pixels(), Preprocessing(), Layout::kNhwc, tensor);
  const auto values = tensor.elements<float>();
  EXPECT_EQ(std::vector<float>(values.begin(), values.end()),
            (std::vector<float>{10, 20, 30, 200, 100, 50}));
}

TEST(ToTensor, ABatchOfOneNeedNotBeThere) {
  const auto written = [](std::vector<std::int64_t> shape, Layout layout) {
    const Tensor tensor = Tensor::empty(std::move(shape), kFloat32);
    write_tensor(two_pixels(), Preprocessing(), layout, tensor);
    const auto values = tensor.elements<float>();
    return std::vector<float>(values.begin(), values.end());
  };
  EXPECT_EQ(written({3, 1, 2}, Layout::kChw), written({1, 3, 1, 2}, Layout::kNchw));
  EXPECT_EQ(written({1, 2, 3}, Layout::kHwc), written({1, 1, 2, 3}, Layout::kNhwc));
}

TEST(ToTensor, IntegersAreRoundedHalfToEvenAndClamped) {
  Preprocessing halves;
  halves.divide_by = 20;  // 10 → 0.5, 30 → 1.5, 50 → 2.5, 200 → 10
  const Tensor rounded = Tensor::empty({1, 1, 2, 3}, DLDataType{kDLInt, 8, 1});
  write_tensor(two_pixels(), halves, Layout::kNhwc, rounded);
  const auto values = rounded.elements<std::int8_t>();
  EXPECT_EQ(std::vector<int>(values.begin(), values.end()), (std::vector<int>{0, 1, 2, 10, 5, 2}));

  Preprocessing wide;
  wide.mean = {100, 100, 100};
  wide.std = {0.5F, 0.5F, 0.5F};
  const Tensor clamped = Tensor::empty({1, 1, 2, 3}, DLDataType{kDLInt, 8, 1});
  write_tensor(two_pixels(), wide, Layout::kNhwc, clamped);
  const auto limits = clamped.elements<std::int8_t>();
  EXPECT_EQ(std::vector<int>(limits.begin(), limits.end()),
            (std::vector<int>{-128, -128, -128, 127, 0, -100}));
}

TEST(ToTensor, OtherTypesAndShapesAreRefused) {
  EXPECT_THROW(write_tensor(two_pixels(), Preprocessing(), Layout::kNhwc,
                            Tensor::empty({1, 1, 2, 3}, DLDataType{kDLInt, 64, 1})),
               Error);
  using Shape = std::vector<std::int64_t>;
  for (const Shape& shape :
       {Shape{}, Shape{1, 1000}, Shape{2, 3, 8, 8}, Shape{1, 4, 8, 8}, Shape{1, 3, 0, 8},
        Shape{1, 3, 8, 70000}, Shape{1, 3, 8, -8}, Shape{1, 8, 8, 3}}) {
    EXPECT_THROW(picture_input_size(shape, Layout::kNchw, 3), Error) << shape_name(shape);
  }
  const InputSize size = picture_input_size(Shape{1, 3, 20, 30}, Layout::kNchw, 3);
  EXPECT_EQ(size.width, 30);
  EXPECT_EQ(size.height, 20);
  EXPECT_EQ(picture_input_size(Shape{3, 20, 30}, Layout::kChw, 3).width, 30);
  EXPECT_EQ(picture_input_size(Shape{20, 30, 1}, Layout::kHwc, 1).height, 20);
  EXPECT_TRUE(throws_error([] { picture_input_size(Shape{1, 3, 20, 30}, Layout::kChw, 3); },
                           ErrorKind::kMismatch, "expected [3, height, width] (CHW)"));
}

}  // namespace
}  // namespace run_model
