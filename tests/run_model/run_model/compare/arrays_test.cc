#include "run_model/run_model/compare/arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <run_model/npy.h>
#include <run_model/npz.h>
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

template <typename T>
Tensor tensor_of(const char* type, const std::vector<T>& values) {
  const Tensor tensor =
      Tensor::empty({static_cast<std::int64_t>(values.size())}, parse_dtype(type));
  std::copy(values.begin(), values.end(), static_cast<T*>(tensor.data()));
  return tensor;
}

class CompareArraysTest : public ::testing::Test {
 protected:
  // Compares one array of each file.
  template <typename T>
  ArrayComparison compare(const char* type, const std::vector<T>& first,
                          const std::vector<T>& second, double atol = 0, double rtol = 0) const {
    write_npy(folder_ / "a.npy", tensor_of(type, first));
    write_npy(folder_ / "b.npy", tensor_of(type, second));
    return compare_array_files(folder_ / "a.npy", folder_ / "b.npy", atol, rtol).at(0);
  }

  TemporaryFolder folder_;
};

TEST_F(CompareArraysTest, EqualArrays) {
  const ArrayComparison result = compare<float>("float32", {1, 2}, {1, 2});
  EXPECT_EQ(result.verdict, ArrayVerdict::kEqual);
  EXPECT_EQ(result.first_form, "float32 [2]");
  EXPECT_EQ(result.elements, 2U);
}

// The second file is measured by the first one, as in numpy.allclose(second, first).
TEST_F(CompareArraysTest, ToleranceIsOfTheFirst) {
  const ArrayComparison within = compare<float>("float32", {100, 0}, {101, 0.25}, 0.25, 0.01);
  EXPECT_EQ(within.verdict, ArrayVerdict::kWithin);
  EXPECT_EQ(within.max_absolute, 1.0);
  EXPECT_EQ(within.max_relative, 0.01);
  const ArrayComparison beyond = compare<float>("float32", {100, 0}, {101.5, 0.5}, 0.25, 0.01);
  EXPECT_EQ(beyond.verdict, ArrayVerdict::kBeyond);
  EXPECT_EQ(beyond.beyond, 2U);
  EXPECT_TRUE(is_difference(beyond.verdict));
}

TEST_F(CompareArraysTest, NotANumberAgreesWithNothing) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ArrayComparison result = compare<float>("float32", {nan, 1}, {nan, 1}, 1, 1);
  EXPECT_EQ(result.verdict, ArrayVerdict::kBeyond);
  EXPECT_EQ(result.not_finite, 1U);
  EXPECT_EQ(result.max_absolute, 0.0);
}

TEST_F(CompareArraysTest, LargeIntegersThatAreTheSameAsDoubles) {
  const std::int64_t large = std::numeric_limits<std::int64_t>::max();
  const ArrayComparison result = compare<std::int64_t>("int64", {large, -5}, {large - 1, -5});
  EXPECT_EQ(result.verdict, ArrayVerdict::kBeyond);
  EXPECT_EQ(result.max_absolute, 1.0);
  EXPECT_EQ(compare<std::int64_t>("int64", {-large}, {large}).max_absolute, 0x1p64);
}

TEST_F(CompareArraysTest, PairsByName) {
  const std::vector<NamedTensor> first{{"x", tensor_of<float>("float32", {1})},
                                       {"only", tensor_of<float>("float32", {1})}};
  const std::vector<NamedTensor> second{{"new", tensor_of<float>("float32", {1})},
                                        {"x", tensor_of<std::int32_t>("int32", {1})}};
  write_npz(folder_ / "a.npz", first);
  write_npz(folder_ / "b.npz", second);
  const std::vector<ArrayComparison> results =
      compare_array_files(folder_ / "a.npz", folder_ / "b.npz", 0, 0);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].verdict, ArrayVerdict::kAnotherForm);
  EXPECT_EQ(results[0].second_form, "int32 [1]");
  EXPECT_EQ(results[1].verdict, ArrayVerdict::kOnlyInFirst);
  EXPECT_EQ(results[2].name, "new");
  EXPECT_EQ(results[2].verdict, ArrayVerdict::kOnlyInSecond);
}

TEST_F(CompareArraysTest, DamagedFilesAreRefused) {
  write_npy(folder_ / "a.npy", tensor_of<float>("float32", {1, 2}));
  folder_.write("b.npy", "\x93NUMPY\x01");
  EXPECT_TRUE(throws_error([&] { compare_array_files(folder_ / "a.npy", folder_ / "b.npy", 0, 0); },
                           ErrorKind::kFormat, "b.npy"));
}

}  // namespace
}  // namespace run_model
