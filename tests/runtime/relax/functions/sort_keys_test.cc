#include "runtime/relax/functions/sort_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "runtime/relax/ffi_abi.h"
#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

template <typename T>
SortKeys keys_of(const std::vector<T>& values, DLDataType dtype) {
  Tensor tensor = Tensor::empty({static_cast<std::int64_t>(values.size())}, dtype);
  std::memcpy(tensor.data(), values.data(), tensor.nbytes());
  return SortKeys(tensor);
}

TEST(SortKeysTest, OrdersPartsOfATensor) {
  const SortKeys keys = keys_of<std::int16_t>({5, -1, 4, -1, 6, -1}, {kDLInt, 16, 1});
  EXPECT_TRUE(has_elements(keys.order(0, 2, 3, true), {1, 0, 2}));
  EXPECT_TRUE(has_elements(keys.order(0, 2, 3, false), {2, 0, 1}));
  EXPECT_TRUE(has_elements(keys.order(1, 2, 3, false), {0, 1, 2}));
}

TEST(SortKeysTest, TakesTheFirstOfAnOrder) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < 600; ++i) numbers.push_back(i * i * 7919 % 23 - 11);  // many alike
  const std::vector<double> same(numbers.begin(), numbers.end());
  const SortKeys integers = keys_of(numbers, {kDLInt, 64, 1});
  const SortKeys reals = keys_of(same, {kDLFloat, 64, 1});
  const auto number = [&](std::int64_t place) {
    return numbers[1 + 2 * static_cast<std::size_t>(place)];
  };
  for (const bool ascending : {true, false}) {
    std::vector<std::int64_t> expected(300);
    std::iota(expected.begin(), expected.end(), 0);
    std::stable_sort(expected.begin(), expected.end(), [&](std::int64_t a, std::int64_t b) {
      return ascending ? number(a) < number(b) : number(b) < number(a);
    });
    EXPECT_EQ(integers.order(1, 2, 300, ascending), expected);
    for (const std::int64_t count : {1, 2, 40, 300, 900}) {
      const std::vector<std::int64_t> first(expected.begin(),
                                            expected.begin() + std::min<std::int64_t>(count, 300));
      EXPECT_EQ(integers.first(1, 2, 300, count, ascending), first) << count;
      EXPECT_EQ(reals.first(1, 2, 300, count, ascending), first) << count;
    }
  }
}

// What TVM 0.27 answers.
TEST(SortKeysTest, LeavesNanWhereTvmDoes) {
  const float nan = std::nanf("");
  const SortKeys keys = keys_of<float>(
      {nan, 1, 2, nan, -1, 3, nan, 1, 2, nan, 4, 0, nan, 9, nan, nan, nan, nan, nan, nan, nan},
      {kDLFloat, 32, 1});
  EXPECT_TRUE(has_elements(keys.first(0, 1, 7, 3, true), {0, 4, 1}));
  EXPECT_TRUE(has_elements(keys.first(7, 1, 7, 3, true), {2, 0, 1}));
  EXPECT_TRUE(has_elements(keys.first(14, 1, 7, 3, true), {2, 1, 0}));
  EXPECT_TRUE(has_elements(keys.order(0, 1, 7, true), {0, 1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(has_elements(keys.order(7, 1, 7, true), {0, 1, 2, 4, 3, 5, 6}));
}

TEST(SortKeysTest, IntegersKeepTheOrderOfNumbers) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::int64_t> keys =
      keys_of<double>({-infinity, -1, -1e-300, 0.0, 1e-300, 2, infinity, std::nan("")},
                      {kDLFloat, 64, 1})
          .integers();
  for (std::size_t i = 1; i < keys.size(); ++i) EXPECT_LT(keys[i - 1], keys[i]) << i;
  const std::vector<std::int64_t> alike =
      keys_of<float>({0.0F, -0.0F, std::nanf(""), -std::nanf("7")}, {kDLFloat, 32, 1}).integers();
  EXPECT_EQ(alike[0], alike[1]);
  EXPECT_EQ(alike[2], alike[3]);
  const std::vector<std::int64_t> large =
      keys_of<std::uint64_t>({0, 1, std::uint64_t{1} << 63, ~std::uint64_t{0}}, {kDLUInt, 64, 1})
          .integers();
  for (std::size_t i = 1; i < large.size(); ++i) EXPECT_LT(large[i - 1], large[i]) << i;
}

TEST(SortKeysTest, TellsNan) {
  const SortKeys reals = keys_of<float>({1, std::nanf("")}, {kDLFloat, 32, 1});
  EXPECT_FALSE(reals.is_nan(0));
  EXPECT_TRUE(reals.is_nan(1));
  EXPECT_FALSE(keys_of<std::int64_t>({1}, {kDLInt, 64, 1}).is_nan(0));
}

TEST(SortKeysTest, TakesEitherBoolAndNothingThatIsNoNumber) {
  for (const DLDataType dtype : {kFfiBoolType, kPlainBoolType}) {
    const SortKeys keys = keys_of<std::uint8_t>({1, 0, 1}, dtype);
    EXPECT_TRUE(has_elements(keys.order(0, 1, 3, true), {1, 0, 2}));
  }
  EXPECT_TRUE(throws_error([] { keys_of<std::uint8_t>({1}, {kDLOpaqueHandle, 8, 1}); },
                           ErrorKind::kMismatch, "cannot be read as numbers"));
}

}  // namespace
}  // namespace run_model
