#include "run_model/run_model/value_range.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/error_matcher.h"

namespace run_model {
namespace {

Tensor tensor_of(const std::vector<float>& values) {
  Tensor tensor = Tensor::empty({static_cast<std::int64_t>(values.size())}, parse_dtype("float32"));
  std::copy(values.begin(), values.end(), static_cast<float*>(tensor.data()));
  return tensor;
}

TEST(ValueRangeTest, FindsExtremesAndMean) {
  const ValueRange range = finite_range(tensor_of({3, -1, 1}), "x");
  EXPECT_EQ(range.min, -1);
  EXPECT_EQ(range.max, 3);
  EXPECT_EQ(range.mean, 1);
}

TEST(ValueRangeTest, EmptyTensorsHaveZeroes) {
  EXPECT_EQ(finite_range(tensor_of({}), "x").mean, 0);
}

TEST(ValueRangeTest, RefusesWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT([&] { finite_range(tensor_of({1, infinity, -infinity}), "output_0"); },
              ThrowsError(ErrorKind::kModel, "output_0 holds NaN or infinity in 2 of 3 values"));
  EXPECT_THAT([] { finite_range(tensor_of({std::numeric_limits<float>::quiet_NaN()}), "x"); },
              ThrowsError(ErrorKind::kModel, "1 of 1"));
}

}  // namespace
}  // namespace run_model
