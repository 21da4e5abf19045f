#include "runtime/tensor_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/error_matcher.h"

namespace run_model {
namespace {

using ::testing::ElementsAre;

template <typename T>
std::vector<double> doubles_of(const std::string& dtype, const std::vector<T>& values) {
  const Tensor tensor =
      Tensor::empty({static_cast<std::int64_t>(values.size())}, parse_dtype(dtype));
  std::copy(values.begin(), values.end(), static_cast<T*>(tensor.data()));
  return to_doubles(tensor);
}

TEST(TensorValuesTest, ReadsEveryElementType) {
  EXPECT_THAT(doubles_of<float>("float32", {-1.5F, 2}), ElementsAre(-1.5, 2));
  EXPECT_THAT(doubles_of<double>("float64", {0.1, -7}), ElementsAre(0.1, -7));
  EXPECT_THAT(doubles_of<std::int8_t>("int8", {-128, 127}), ElementsAre(-128, 127));
  EXPECT_THAT(doubles_of<std::int16_t>("int16", {-300, 300}), ElementsAre(-300, 300));
  EXPECT_THAT(doubles_of<std::int32_t>("int32", {-70000, 6}), ElementsAre(-70000, 6));
  EXPECT_THAT(doubles_of<std::int64_t>("int64", {-5, 1LL << 53}), ElementsAre(-5, 0x1p53));
  EXPECT_THAT(doubles_of<std::uint8_t>("uint8", {0, 255}), ElementsAre(0, 255));
  EXPECT_THAT(doubles_of<std::uint16_t>("uint16", {0, 65535}), ElementsAre(0, 65535));
  EXPECT_THAT(doubles_of<std::uint32_t>("uint32", {4294967295U}), ElementsAre(4294967295.0));
  EXPECT_THAT(doubles_of<std::uint64_t>("uint64", {1ULL << 63}), ElementsAre(0x1p63));
  EXPECT_THAT(doubles_of<std::uint8_t>("bool", {0, 1, 255}), ElementsAre(0, 1, 1));
}

TEST(TensorValuesTest, ReadsSixteenBitFloats) {
  // 1, -2, the largest, the least subnormal.
  EXPECT_THAT(doubles_of<std::uint16_t>("float16", {0x3C00, 0xC000, 0x7BFF, 0x0001}),
              ElementsAre(1, -2, 65504, 0x1p-24));
  EXPECT_THAT(doubles_of<std::uint16_t>("bfloat16", {0x3F80, 0xC000, 0x7F7F}),
              ElementsAre(1, -2, 0x1.FEp127));
}

TEST(TensorValuesTest, RefusesVectors) {
  EXPECT_THAT([] { to_doubles(Tensor::empty({2}, parse_dtype("float32x4"))); },
              ThrowsError(ErrorKind::kMismatch, "float32x4"));
}

}  // namespace
}  // namespace run_model
