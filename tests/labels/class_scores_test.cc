#include <run_model/class_scores.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <run_model/error.h>
#include <run_model/top_k.h>
#include "tests/has_elements.h"

namespace run_model {
namespace {

using ::testing::HasSubstr;

template <typename T>
Tensor tensor_of(const std::vector<T>& values, const std::string& dtype) {
  Tensor tensor = Tensor::empty({1, static_cast<std::int64_t>(values.size())}, parse_dtype(dtype));
  std::copy(values.begin(), values.end(), static_cast<T*>(tensor.data()));
  return tensor;
}

TEST(ClassScoresTest, ReadsEveryElementType) {
  EXPECT_TRUE(has_elements(class_scores(tensor_of<float>({-1.5F, 2}, "float32")), {-1.5, 2}));
  EXPECT_TRUE(has_elements(class_scores(tensor_of<double>({0.1, -7}, "float64")), {0.1, -7}));
  EXPECT_TRUE(has_elements(class_scores(tensor_of<std::int8_t>({-128, 127}, "int8")), {-128, 127}));
  EXPECT_TRUE(has_elements(class_scores(tensor_of<std::uint8_t>({0, 255}, "uint8")), {0, 255}));
  EXPECT_TRUE(has_elements(class_scores(tensor_of<std::int32_t>({-5, 6}, "int32")), {-5, 6}));
  EXPECT_TRUE(has_elements(class_scores(tensor_of<std::int64_t>({-5, 6}, "int64")), {-5, 6}));
}

TEST(ClassScoresTest, ReadsHalfPrecision) {
  // 1, -2, 65504 (the largest), 2^-24 (the least subnormal), 2^-14 (the least normal), -0, 1/3.
  const auto halves =
      tensor_of<std::uint16_t>({0x3C00, 0xC000, 0x7BFF, 0x0001, 0x0400, 0x8000, 0x3555}, "float16");
  EXPECT_TRUE(
      has_elements(class_scores(halves), {1, -2, 65504, 0x1p-24, 0x1p-14, 0, 0.333251953125}));
}

TEST(ClassScoresTest, AppliesQuantizationToIntegersOnly) {
  const Quantization quantization{0.5, -128};
  EXPECT_TRUE(has_elements(class_scores(tensor_of<std::int8_t>({-128, 127}, "int8"), quantization),
                           {0, 127.5}));
  EXPECT_TRUE(has_elements(class_scores(tensor_of<float>({4}, "float32"), quantization), {4}));
}

TEST(ClassScoresTest, RefusesNanAndInfinity) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    try {
      class_scores(tensor_of<float>({0, bad, bad}, "float32"));
      FAIL() << bad;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kModel);
      EXPECT_THAT(error.what(), HasSubstr("for class 1 (2 of 3 scores"));
    }
  }
  EXPECT_THROW(class_scores(tensor_of<std::uint16_t>({0x7C00}, "float16")), Error);
  EXPECT_THROW(class_scores(tensor_of<std::uint16_t>({0xFE01}, "float16")), Error);
}

TEST(ClassScoresTest, RefusesOtherTypes) {
  for (const char* dtype : {"bool", "bfloat16"}) {
    const Tensor tensor = Tensor::empty({1, 4}, parse_dtype(dtype));
    try {
      class_scores(tensor);
      FAIL() << dtype;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
      EXPECT_THAT(error.what(), HasSubstr(dtype));
    }
  }
}

TEST(ClassCountTest, TakesOnePictureOnly) {
  EXPECT_EQ(class_count({1000}), 1000U);
  EXPECT_EQ(class_count({1, 1000}), 1000U);
  EXPECT_EQ(class_count({1, 1000, 1, 1}), 1000U);
  EXPECT_EQ(class_count({1, 1, 1, 1000}), 1000U);
  EXPECT_EQ(class_count({1, 1}), 1U);
  EXPECT_EQ(class_count({}), 1U);
  const std::vector<std::vector<std::int64_t>> unusable{{2, 1000}, {1, 10, 7, 7}, {1, 0}, {0}};
  for (const std::vector<std::int64_t>& shape : unusable) {
    try {
      class_count(shape);
      ADD_FAILURE() << shape_name(shape);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kMismatch);
      EXPECT_THAT(error.what(), HasSubstr(shape_name(shape)));
    }
  }
}

TEST(IsDistributionTest, NeedsRangeAndSum) {
  EXPECT_TRUE(is_distribution(std::vector<double>{0.25, 0.75}));
  EXPECT_TRUE(is_distribution(std::vector<double>{0.25, 0.7509}));
  EXPECT_FALSE(is_distribution(std::vector<double>{0.25, 0.7511}));
  EXPECT_FALSE(is_distribution(std::vector<double>{-0.25, 1.25}));
  EXPECT_FALSE(is_distribution(std::vector<double>{0.2, 0.2}));
  EXPECT_FALSE(is_distribution(std::vector<double>{}));
}

std::vector<std::size_t> indices(const std::vector<Prediction>& predictions) {
  std::vector<std::size_t> result;
  for (const Prediction& prediction : predictions) result.push_back(prediction.index);
  return result;
}

TEST(SoftmaxTest, MatchesItsDefinition) {
  const std::vector<double> result = softmax(std::vector<double>{1, 2, 4});
  const double sum = std::exp(1) + std::exp(2) + std::exp(4);
  ASSERT_EQ(result.size(), 3U);
  EXPECT_NEAR(result[0], std::exp(1) / sum, 1e-15);
  EXPECT_NEAR(result[1], std::exp(2) / sum, 1e-15);
  EXPECT_NEAR(result[2], std::exp(4) / sum, 1e-15);
}

TEST(SoftmaxTest, DoesNotOverflow) {
  EXPECT_TRUE(has_elements(softmax(std::vector<double>{1e300, 1e300}), {0.5, 0.5}));
  EXPECT_TRUE(has_elements(softmax(std::vector<double>{-1e300, 1e300}), {0, 1}));
  EXPECT_TRUE(has_elements(softmax(std::vector<double>{}), {}));
}

TEST(TopKTest, OrdersByScoreThenIndex) {
  const std::vector<double> scores{3, 9, 9, 1, 9};
  EXPECT_TRUE(has_elements(indices(top_k(scores, 4)), {1, 2, 4, 0}));
}

TEST(TopKTest, AppliesSoftmaxToLogitsOnce) {
  const std::vector<Prediction> best = top_k(std::vector<double>{0, std::log(3)}, 2);
  EXPECT_TRUE(has_elements(indices(best), {1, 0}));
  EXPECT_NEAR(best[0].probability, 0.75, 1e-15);
  EXPECT_NEAR(best[1].probability, 0.25, 1e-15);
}

TEST(TopKTest, LeavesADistributionAlone) {
  const std::vector<Prediction> best = top_k(std::vector<double>{0.1, 0.9}, 1);
  ASSERT_EQ(best.size(), 1U);
  EXPECT_EQ(best[0].index, 1U);
  EXPECT_EQ(best[0].probability, 0.9);
}

TEST(TopKTest, ScoresWithoutProbabilityAreStillOrdered) {
  const std::vector<Prediction> best = top_k(std::vector<double>{5000, -2000, -1000}, 3);
  EXPECT_TRUE(has_elements(indices(best), {0, 2, 1}));
  EXPECT_EQ(best[2].probability, 0.0);
}

TEST(TopKTest, CountIsCappedByTheClasses) {
  EXPECT_EQ(top_k(std::vector<double>{1, 2}, 5).size(), 2U);
  EXPECT_EQ(top_k(std::vector<double>{1, 2}, 0).size(), 0U);
}

}  // namespace
}  // namespace run_model
