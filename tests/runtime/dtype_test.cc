#include <run_model/dtype.h>

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include <run_model/error.h>

namespace run_model {
namespace {

TEST(Dtype, ReadsAndWritesTvmSpellings) {
  for (const char* name : {"float32", "float64", "float16", "bfloat16", "int8", "uint8", "int16",
                           "int32", "int64", "uint64", "bool", "handle", "float32x4", "int4"}) {
    EXPECT_EQ(dtype_name(parse_dtype(name)), name);
  }
}

TEST(Dtype, BoolIsOneBitInOneByte) {
  DLDataType dtype = parse_dtype("bool");
  EXPECT_EQ(dtype.code, kDLUInt);
  EXPECT_EQ(dtype.bits, 1);
  EXPECT_EQ(dtype_bytes(dtype), 1u);
}

TEST(Dtype, CountsLanesAndPartialBytes) {
  EXPECT_EQ(dtype_bytes(parse_dtype("float32x4")), 16u);
  EXPECT_EQ(dtype_bytes(parse_dtype("int4")), 1u);
  EXPECT_EQ(dtype_bytes(parse_dtype("float64")), 8u);
}

TEST(Dtype, RefusesWhatIsNoType) {
  for (const char* name :
       {"", "float", "float31", "float0", "int-8", "int8x", "int8x0", "int8x9999", "uint65",
        "complex64", "float32 ", "xfloat32", "int99999999999999"}) {
    EXPECT_THROW(parse_dtype(name), Error) << name;
  }
}

TEST(ElementCount, MultipliesDimensions) {
  EXPECT_EQ(element_count(std::vector<std::int64_t>{}), 1);
  EXPECT_EQ(element_count(std::vector<std::int64_t>{2, 3, 4}), 24);
  EXPECT_EQ(element_count(std::vector<std::int64_t>{2, 0, 4}), 0);
}

TEST(ElementCount, RefusesNegativeAndOverflowingShapes) {
  std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(element_count(std::vector<std::int64_t>{2, -1}), Error);
  EXPECT_THROW(element_count(std::vector<std::int64_t>{huge, 2}), Error);
  EXPECT_THROW(element_count(std::vector<std::int64_t>{0, huge, 2}), Error);
  EXPECT_THROW(tensor_bytes(std::vector<std::int64_t>{huge}, parse_dtype("float32")), Error);
}

}  // namespace
}  // namespace run_model
