#include "runtime/relax/functions/runtime_functions.h"
#include "tests/has_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace run_model {
namespace {

constexpr DLDataType kInt64{kDLInt, 64, 1};

// Where the sorted elements of a line were, as `index`; nothing if it cannot be told so.
template <typename T, typename Index = std::int64_t>
std::vector<Index> argsort(std::vector<T> values, DLDataType dtype, bool ascending,
                           DLDataType index = kInt64) {
  std::int64_t size = static_cast<std::int64_t>(values.size());
  std::vector<Index> order(values.size());
  DLTensor tensors[] = {{values.data(), {kDLCPU, 0}, 1, dtype, &size, nullptr, 0},
                        {order.data(), {kDLCPU, 0}, 1, index, &size, nullptr, 0}};
  FfiAny arguments[4];
  for (int i = 0; i < 2; ++i) {
    arguments[i].type = kFfiTensorPointer;
    arguments[i].pointer = &tensors[i];
  }
  arguments[2].type = kFfiInt;
  arguments[3].type = kFfiBool;
  arguments[3].integer = ascending ? 1 : 0;
  FfiAny result;
  const FfiFunction function = find_runtime_function("tvm.contrib.sort.argsort");
  if (function(nullptr, arguments, 4, &result) != 0) return {};
  return order;
}

TEST(RuntimeFunctionsTest, SortsEveryTypeToItsEnds) {
  using Wide = std::numeric_limits<std::int64_t>;
  const std::vector<std::int64_t> wide{1, Wide::min(), Wide::max(), 1, Wide::max() - 1};
  EXPECT_TRUE(has_elements(argsort(wide, {kDLInt, 64, 1}, true), {1, 0, 3, 4, 2}));
  EXPECT_TRUE(has_elements(argsort(wide, {kDLInt, 64, 1}, false), {2, 4, 0, 3, 1}));
  const std::vector<std::uint64_t> large{1, ~std::uint64_t{0}, std::uint64_t{1} << 63, 1};
  EXPECT_TRUE(has_elements(argsort(large, {kDLUInt, 64, 1}, true), {0, 3, 2, 1}));
  EXPECT_TRUE(has_elements(argsort(large, {kDLUInt, 64, 1}, false), {1, 2, 0, 3}));
  const std::vector<std::int8_t> bytes{3, -128, 127, 3};
  EXPECT_TRUE(has_elements(argsort(bytes, {kDLInt, 8, 1}, false), {2, 0, 3, 1}));
  // 1, -1 and 2 in half precision.
  const std::vector<std::uint16_t> halves{0x3c00, 0xbc00, 0x4000};
  EXPECT_TRUE(has_elements(argsort(halves, {kDLFloat, 16, 1}, true), {1, 0, 2}));
}

// As tvm.contrib.sort.argsort_nms of TVM 0.27 gave it.
TEST(RuntimeFunctionsTest, SortsTheFirstOfEachLine) {
  float scores[] = {0.1F, 0.9F, 0.5F, 0.9F, 3, 1, 2, 4};
  std::int32_t numbers[] = {3, 4};
  std::int32_t order[8];
  std::int64_t shape[] = {2, 4}, lines[] = {2};
  constexpr DLDataType kInt32{kDLInt, 32, 1};
  DLTensor tensors[] = {{scores, {kDLCPU, 0}, 2, {kDLFloat, 32, 1}, shape, nullptr, 0},
                        {numbers, {kDLCPU, 0}, 1, kInt32, lines, nullptr, 0},
                        {order, {kDLCPU, 0}, 2, kInt32, shape, nullptr, 0}};
  FfiAny arguments[5];
  for (int i = 0; i < 3; ++i) {
    arguments[i].type = kFfiTensorPointer;
    arguments[i].pointer = &tensors[i];
  }
  arguments[3].type = kFfiInt;
  arguments[3].integer = -1;
  arguments[4].type = kFfiBool;
  FfiAny result;
  const FfiFunction function = find_runtime_function("tvm.contrib.sort.argsort_nms");
  ASSERT_EQ(function(nullptr, arguments, 5, &result), 0);
  EXPECT_TRUE(has_elements(std::vector(order, order + 8), {1, 2, 0, 3, 3, 0, 2, 1}));
  numbers[0] = -1;
  ASSERT_EQ(function(nullptr, arguments, 5, &result), 0);
  EXPECT_TRUE(has_elements(std::vector(order, order + 4), {0, 1, 2, 3}));
  numbers[0] = 5;
  EXPECT_NE(function(nullptr, arguments, 5, &result), 0);
}

TEST(RuntimeFunctionsTest, ZerosAreEqualAndInfinitiesTheEnds) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values{0.0F, -0.0F, infinity, -infinity, 0.0F};
  EXPECT_TRUE(has_elements(argsort(values, {kDLFloat, 32, 1}, true), {3, 0, 1, 4, 2}));
  EXPECT_TRUE(has_elements(argsort(values, {kDLFloat, 32, 1}, false), {2, 0, 1, 4, 3}));
  const std::vector<double> numbers{std::nan(""), std::nan("")};
  EXPECT_TRUE(has_elements(argsort(numbers, {kDLFloat, 64, 1}, false), {0, 1}));
}

TEST(RuntimeFunctionsTest, WritesIndicesAsNumbersOfSeveralTypes) {
  const std::vector<float> values{3, 1, 2};
  constexpr DLDataType f32{kDLFloat, 32, 1};
  EXPECT_TRUE(
      has_elements(argsort<float, std::int32_t>(values, f32, true, {kDLInt, 32, 1}), {1, 2, 0}));
  EXPECT_TRUE(
      has_elements(argsort<float, std::uint8_t>(values, f32, true, {kDLUInt, 8, 1}), {1, 2, 0}));
  EXPECT_TRUE(has_elements(argsort<float, float>(values, f32, true, f32), {1, 2, 0}));
  EXPECT_TRUE(
      has_elements(argsort<float, double>(values, f32, true, {kDLFloat, 64, 1}), {1, 2, 0}));
  EXPECT_TRUE((argsort<float, std::uint16_t>(values, f32, true, {kDLFloat, 16, 1}).empty()));
}

}  // namespace
}  // namespace run_model
