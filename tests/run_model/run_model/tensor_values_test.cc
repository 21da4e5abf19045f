#include "run_model/run_model/tensor_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include <run_model/tensor.h>
#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using ::testing::Each;

Tensor filled(const char* type, FillMode mode, std::uint64_t seed = 0, const char* name = "x",
              std::int64_t count = 1000) {
  const Tensor tensor = Tensor::empty({count}, parse_dtype(type));
  fill_tensor(tensor, mode, seed, name);
  return tensor;
}

const std::vector<const char*> kTypes{"float16", "bfloat16", "float32", "float64", "bool",
                                      "int8",    "uint8",    "int16",   "uint16",  "int32",
                                      "uint32",  "int64",    "uint64"};

// The numbers that Rosetta Code lists for SplitMix64 begun at 1234567.
TEST(FillTensorTest, GeneratesTheKnownNumbers) {
  std::uint64_t state = 1234567;
  for (const std::uint64_t expected :
       {6457827717110365317U, 3203168211198807973U, 9817491932198370423U, 4593380528125082431U,
        16408922859458223821U}) {
    EXPECT_EQ(split_mix_64(state), expected);
  }
}

TEST(FillTensorTest, ZerosAndOnesOfEveryType) {
  for (const char* type : kTypes) {
    EXPECT_THAT(to_doubles(filled(type, FillMode::kZeros)), Each(0.0)) << type;
    EXPECT_THAT(to_doubles(filled(type, FillMode::kOnes)), Each(1.0)) << type;
  }
}

TEST(FillTensorTest, RandomValuesCoverTheirRange) {
  for (const char* type : kTypes) {
    const std::vector<double> values = to_doubles(filled(type, FillMode::kRandom));
    const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
    const DLDataType dtype = parse_dtype(type);
    SCOPED_TRACE(type);
    if (dtype.code == kDLFloat || dtype.code == kDLBfloat) {
      EXPECT_GE(*least, 0.0);
      EXPECT_LT(*least, 0.02);
      EXPECT_GT(*greatest, 0.98);
      EXPECT_LT(*greatest, 1.0);
    } else if (dtype.bits == 8) {
      EXPECT_LT(*least, dtype.code == kDLInt ? -120 : 8);
      EXPECT_GT(*greatest, dtype.code == kDLInt ? 120 : 248);
    } else {
      EXPECT_EQ(*least, 0.0);
      EXPECT_EQ(*greatest, 1.0);
    }
  }
}

// By the documented formula, with FNV-1a-64("data") and SplitMix64 in Python.
TEST(FillTensorTest, ValuesAreTheSameOnEveryMachine) {
  EXPECT_TRUE(has_elements(to_doubles(filled("float32", FillMode::kRandom, 7, "data", 3)),
                           {16675011.0 / 16777216, 7819957.0 / 16777216, 14924320.0 / 16777216}));
  EXPECT_TRUE(
      has_elements(to_doubles(filled("int8", FillMode::kRandom, 7, "data", 3)), {-2, 119, -29}));
}

TEST(FillTensorTest, SeedAndNameMatter) {
  const auto values = [](std::uint64_t seed, const char* name) {
    return to_doubles(filled("float32", FillMode::kRandom, seed, name));
  };
  EXPECT_EQ(values(1, "a"), values(1, "a"));
  EXPECT_NE(values(1, "a"), values(2, "a"));
  EXPECT_NE(values(1, "a"), values(1, "b"));
}

TEST(FillTensorTest, NamesOfModes) {
  EXPECT_EQ(parse_fill_mode("zeros"), FillMode::kZeros);
  EXPECT_EQ(parse_fill_mode("random"), FillMode::kRandom);
  EXPECT_TRUE(throws_error([] { parse_fill_mode("noise"); }, ErrorKind::kUsage,
                           "expected zeros, ones or random"));
}

TEST(FillTensorTest, RefusesVectorsOfElements) {
  EXPECT_TRUE(throws_error([] { filled("float32x4", FillMode::kOnes); }, ErrorKind::kMismatch,
                           "cannot be filled"));
}

Tensor float_tensor_of(const std::vector<float>& values) {
  Tensor tensor = Tensor::empty({static_cast<std::int64_t>(values.size())}, parse_dtype("float32"));
  std::copy(values.begin(), values.end(), static_cast<float*>(tensor.data()));
  return tensor;
}

TEST(ValueRangeTest, FindsExtremesAndMean) {
  const ValueRange range = finite_range(float_tensor_of({3, -1, 1}), "x");
  EXPECT_EQ(range.min, -1);
  EXPECT_EQ(range.max, 3);
  EXPECT_EQ(range.mean, 1);
}

TEST(ValueRangeTest, EmptyTensorsHaveZeroes) {
  EXPECT_EQ(finite_range(float_tensor_of({}), "x").mean, 0);
}

TEST(ValueRangeTest, RefusesWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(
      throws_error([&] { finite_range(float_tensor_of({1, infinity, -infinity}), "output_0"); },
                   ErrorKind::kModel, "output_0 holds NaN or infinity in 2 of 3 values"));
  EXPECT_TRUE(throws_error(
      [] { finite_range(float_tensor_of({std::numeric_limits<float>::quiet_NaN()}), "x"); },
      ErrorKind::kModel, "1 of 1"));
}

}  // namespace
}  // namespace run_model
