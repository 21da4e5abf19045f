#include "base/byte_reader.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/runtime/error_matchers.h"

namespace run_model {
namespace {

using testing_errors::expect_error;

template <typename... Values>
std::array<std::byte, sizeof...(Values)> bytes_of(Values... values) {
  return {static_cast<std::byte>(values)...};
}

TEST(ByteReaderTest, ReadsLittleEndianNumbers) {
  const auto data = bytes_of(0x01, 0x02, 0x01, 0x04, 0x03, 0x02, 0x01, 0xff, 0xff, 0xff, 0xff, 0xfe,
                             0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff);
  ByteReader reader(data, "file");
  EXPECT_EQ(reader.u8("a"), 0x01);
  EXPECT_EQ(reader.u16("b"), 0x0102);
  EXPECT_EQ(reader.u32("c"), 0x01020304u);
  EXPECT_EQ(reader.i32("d"), -1);
  EXPECT_EQ(reader.i64("e"), -2);
  EXPECT_TRUE(reader.at_end());
}

TEST(ByteReaderTest, ShortReadNamesSourceOffsetAndField) {
  const auto data = bytes_of(1, 2, 3);
  ByteReader reader(data, "parameters file 'x'", 100);
  reader.u8("first");
  expect_error(
      [&] { reader.u32("the number of tensors"); }, ErrorKind::kFormat,
      {"parameters file 'x' is malformed at byte 101: the number of tensors takes 4 bytes, but "
       "only 2 are left"});
  EXPECT_EQ(reader.offset(), 101u) << "a failed read must not move the reader";
}

TEST(ByteReaderTest, HugeLengthIsRefusedWithoutOverflow) {
  const auto data = bytes_of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 'a');
  ByteReader reader(data, "file");
  expect_error([&] { reader.string(~std::uint64_t{0}, "a name"); }, ErrorKind::kFormat,
               {"the length of a name", "the remaining 1 bytes can hold"});
  EXPECT_EQ(reader.offset(), 0u);
}

TEST(ByteReaderTest, CountIsLimitedByItsLimitAndByTheBytesLeft) {
  const auto data = bytes_of(3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7);
  ByteReader reader(data, "file");
  expect_error([&] { reader.count(2, 1, "the number of names"); }, ErrorKind::kFormat,
               {"the number of names is 3, more than the 2 that make sense"});
  expect_error([&] { reader.count(10, 4, "the number of names"); }, ErrorKind::kFormat,
               {"is 3, more than the remaining 7 bytes can hold"});
  EXPECT_EQ(reader.count(3, 2, "the number of names"), 3u);
}

TEST(ByteReaderTest, ReadsStrings) {
  const auto data = bytes_of(2, 0, 0, 0, 0, 0, 0, 0, 'p', '0', 0, 0, 0, 0, 0, 0, 0, 0);
  ByteReader reader(data, "file");
  EXPECT_EQ(reader.string(10, "a name"), "p0");
  EXPECT_EQ(reader.string(10, "a name"), "");
  EXPECT_TRUE(reader.at_end());
}

}  // namespace
}  // namespace run_model
