#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <run_model/tensor.h>
#include "rpc/functions/builtin.h"
#include "tests/throws_error.h"

namespace run_model::rpc {
namespace {

using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::Le;

class RandomFillTest : public testing::Test {
 protected:
  RandomFillTest() { add_random_fill(registry_); }

  Tensor filled(DLDataType dtype, std::int64_t count = 10000,
                const std::string& function = "tvm.contrib.random.random_fill") {
    Tensor tensor = Tensor::empty({count}, dtype);
    std::fill_n(static_cast<unsigned char*>(tensor.data()), tensor.nbytes(), 0xFF);
    const std::vector<Value> arguments{TensorArgument{tensor}};
    registry_.find(function)->call(arguments);
    return tensor;
  }

  Registry registry_;
};

TEST_F(RandomFillTest, FillsFloatsWithNormalNumbers) {
  for (const char* name : {"float16", "bfloat16", "float32", "float64"}) {
    const std::vector<double> values = to_doubles(filled(parse_dtype(name)));
    EXPECT_THAT(values, Each(AllOf(Ge(1.0), Le(10.0)))) << name;
    EXPECT_GT(std::set<double>(values.begin(), values.end()).size(), 400u) << name;
    EXPECT_LT(*std::min_element(values.begin(), values.end()), 1.1) << name;
    EXPECT_GT(*std::max_element(values.begin(), values.end()), 9.9) << name;
  }
}

TEST_F(RandomFillTest, FillsIntegersWithSmallNumbers) {
  for (const char* name :
       {"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"}) {
    const std::vector<double> values = to_doubles(filled(parse_dtype(name)));
    EXPECT_THAT(values, Each(AllOf(Ge(1.0), Le(9.0)))) << name;
    EXPECT_EQ(std::set<double>(values.begin(), values.end()).size(), 9u) << name;
  }
  EXPECT_THAT(to_doubles(filled(parse_dtype("bool"))), Each(1.0));
}

TEST_F(RandomFillTest, FillsNarrowTypesWithNothingSpecial) {
  const Tensor four = filled({kDLInt, 4, 1});
  for (std::size_t i = 0; i < four.nbytes(); ++i) {
    const unsigned byte = static_cast<unsigned char*>(four.data())[i];
    EXPECT_THAT((std::vector{byte & 15, byte >> 4}), Each(AllOf(Ge(1u), Le(7u))));
  }
  // TVM's 8-bit floats with 4 and 5 bits of exponent: neither zero, NaN nor denormal.
  for (const std::uint8_t code : {6, 7}) {
    const Tensor floats = filled({code, 8, 1});
    const auto* bytes = static_cast<unsigned char*>(floats.data());
    EXPECT_THAT(std::vector<unsigned>(bytes, bytes + floats.nbytes()),
                Each(AllOf(Ge(0x38u), Le(0x3Fu))));
  }
}

TEST_F(RandomFillTest, FillsAllLanes) {
  const Tensor vectors = filled({kDLFloat, 32, 4}, 25);
  ASSERT_EQ(vectors.nbytes(), 400u);
  const auto* floats = static_cast<float*>(vectors.data());
  EXPECT_THAT(std::vector<float>(floats, floats + 100), Each(AllOf(Ge(1.0F), Le(10.0F))));
  // Eight of them are packed into four bytes, and eight bools into one.
  EXPECT_EQ(filled({kDLInt, 4, 8}, 3).nbytes(), 12u);
  EXPECT_EQ(filled({kDLUInt, 1, 8}, 3).nbytes(), 3u);
}

TEST_F(RandomFillTest, GivesEveryTensorOthersAndEverySessionTheSame) {
  const auto values = [this] { return to_doubles(filled(parse_dtype("float32"))); };
  const std::vector<double> first = values();
  EXPECT_NE(values(), first);
  Registry another;
  add_random_fill(another);
  std::swap(registry_, another);
  EXPECT_EQ(values(), first);
  EXPECT_EQ(filled(parse_dtype("int8"), 1, "tvm.contrib.random.random_fill_for_measure").size(), 1);
}

TEST_F(RandomFillTest, RefusesTypesThatItDoesNotKnow) {
  EXPECT_TRUE(throws_error([&] { filled({kDLOpaqueHandle, 64, 1}, 1); }, ErrorKind::kMismatch,
                           "cannot be filled"));
  EXPECT_TRUE(throws_error([&] { filled({kDLFloat, 128, 1}, 1); }, ErrorKind::kMismatch,
                           "cannot be filled"));
  EXPECT_EQ(filled(parse_dtype("float32"), 0).size(), 0);
}

}  // namespace
}  // namespace run_model::rpc
