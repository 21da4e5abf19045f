#include "base/byte_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/throws_error.h"

namespace run_model {
namespace {

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
  ByteReader reader(data, "parameters file 'x'", {}, 100);
  reader.u8("first");
  EXPECT_TRUE(throws_error(
      [&] { reader.u32("the number of tensors"); }, ErrorKind::kFormat,
      "parameters file 'x' is malformed at byte 101: the number of tensors takes 4 bytes, but "
      "only 2 are left"));
  EXPECT_EQ(reader.offset(), 101u) << "a failed read must not move the reader";
}

TEST(ByteReaderTest, HugeLengthIsRefusedWithoutOverflow) {
  const auto data = bytes_of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 'a');
  ByteReader reader(data, "file");
  EXPECT_TRUE(throws_error([&] { reader.string(~std::uint64_t{0}, "a name"); }, ErrorKind::kFormat,
                           {"the length of a name", "the remaining 1 bytes can hold"}));
  EXPECT_EQ(reader.offset(), 0u);
}

TEST(ByteReaderTest, CountIsLimitedByItsLimitAndByTheBytesLeft) {
  const auto data = bytes_of(3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7);
  ByteReader reader(data, "file");
  EXPECT_TRUE(throws_error([&] { reader.count(2, 1, "the number of names"); }, ErrorKind::kFormat,
                           "the number of names is 3, more than the 2 that make sense"));
  EXPECT_TRUE(throws_error([&] { reader.count(10, 4, "the number of names"); }, ErrorKind::kFormat,
                           "is 3, more than the remaining 7 bytes can hold"));
  EXPECT_EQ(reader.count(3, 2, "the number of names"), 3u);
}

TEST(ByteReaderTest, ReadsStrings) {
  const auto data = bytes_of(2, 0, 0, 0, 0, 0, 0, 0, 'p', '0', 0, 0, 0, 0, 0, 0, 0, 0);
  ByteReader reader(data, "file");
  EXPECT_EQ(reader.string(10, "a name"), "p0");
  EXPECT_EQ(reader.string(10, "a name"), "");
  EXPECT_TRUE(reader.at_end());
}

TEST(ByteReaderTest, ReadsBigEndianNumbersAndWordsOfTheFormatsWidth) {
  const auto data = bytes_of(0x12, 0x34, 0x01, 0x02, 0x03, 0x04, 0xff, 0xff, 0xff, 0xfe);
  ByteReader reader(data, "file", {.order = std::endian::big, .word_bytes = 4});
  EXPECT_EQ(reader.u16(), 0x1234);
  EXPECT_EQ(reader.word(), 0x01020304u);
  EXPECT_EQ(reader.i32(), -2);
  EXPECT_TRUE(reader.at_end());
}

TEST(ByteReaderTest, ReadsAtAnyPosition) {
  const auto data = bytes_of(1, 2, 3, 4, 5);
  const ByteReader reader(data, "file");
  EXPECT_EQ(reader.number(1, 3), 0x040302u);
  EXPECT_EQ(reader.find_number(3, 2), 0x0504u);
  EXPECT_EQ(reader.find_number(4, 2), std::nullopt);
  EXPECT_EQ(reader.at(4).u8(), 5);
  EXPECT_EQ(reader.bytes_at(2, 3).size(), 3u);
  EXPECT_TRUE(reader.contains(5, 0));
  EXPECT_FALSE(reader.contains(6, 0));
  EXPECT_FALSE(reader.contains(2, ~std::uint64_t{0}));
  EXPECT_TRUE(
      throws_error([&] { reader.at(~std::uint64_t{0}).u8("a flag"); }, ErrorKind::kFormat,
                   "at byte 18446744073709551615: a flag takes 1 bytes, but only 0 are left"));
  EXPECT_EQ(reader.at(9).remaining(), 0u);
}

TEST(ByteReaderTest, PartsKeepTheOffsetsOfTheWhole) {
  const auto data = bytes_of(1, 2, 3, 4, 5);
  const ByteReader whole(data, "file", {}, 10);
  ByteReader part = whole.part(1, 2);
  EXPECT_EQ(part.u8(), 2);
  EXPECT_EQ(part.position(), 1u);
  EXPECT_TRUE(throws_error([&] { part.u16("a width"); }, ErrorKind::kFormat,
                           "at byte 12: a width takes 2 bytes, but only 1 are left"));
  EXPECT_TRUE(throws_error([&] { whole.part(3, 3, "a table"); }, ErrorKind::kFormat,
                           "at byte 13: a table takes 3 bytes, but only 2 are left"));
}

TEST(ByteReaderTest, ReadsNumbersOfAnyLength) {
  const auto data = bytes_of(0xe5, 0x8e, 0x26, 0x00, 0x80);
  ByteReader reader(data, "file");
  EXPECT_EQ(reader.uleb128(), 624485u);  // the example of DWARF 5, 7.6
  EXPECT_EQ(reader.uleb128(), 0u);
  EXPECT_TRUE(throws_error([&] { reader.uleb128("a tag"); }, ErrorKind::kFormat,
                           "at byte 4: a tag has no end"));
  EXPECT_EQ(reader.position(), 4u);
  const std::array<std::uint8_t, 11> endless{0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
                                             0x80, 0x80, 0x80, 0x80, 0x01};
  EXPECT_TRUE(throws_error([&] { ByteReader(endless, "file").uleb128(); }, ErrorKind::kFormat,
                           "has no end"));
}

TEST(ByteReaderTest, ReadsTextUpToItsZeroByte) {
  const auto data = bytes_of('a', 'b', 0, 0, 'c');
  ByteReader reader(data, "file");
  EXPECT_EQ(reader.zero_terminated(), "ab");
  EXPECT_EQ(reader.zero_terminated(), "");
  EXPECT_TRUE(throws_error([&] { reader.zero_terminated("a vendor"); }, ErrorKind::kFormat,
                           "at byte 4: a vendor has no zero byte at its end"));
}

Error picture_error(const ByteFault& fault) {
  return {ErrorKind::kImage,
          std::string(fault.source) + ": " +
              (fault.past_end ? "truncated at byte " + std::to_string(fault.end) : fault.problem),
          fault.hint.empty() ? "copy the file again" : fault.hint};
}

TEST(ByteReaderTest, FormatsHaveTheirOwnErrors) {
  const auto data = bytes_of(1, 2, 3);
  ByteReader reader(data, "cat.png", {.error = picture_error});
  EXPECT_EQ(reader.octets(2)[1], 2);
  EXPECT_TRUE(throws_error([&] { reader.u32(); }, ErrorKind::kImage,
                           "cat.png: truncated at byte 3; copy the file again"));
  EXPECT_TRUE(throws_error([&] { reader.fail("no chunk", "give another"); }, ErrorKind::kImage,
                           "cat.png: no chunk; give another"));
}

}  // namespace
}  // namespace run_model
