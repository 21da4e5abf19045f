#include "base/text.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace run_model {
namespace {

TEST(Utf8Test, AcceptsEveryLength) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("tiger cat"));
  EXPECT_TRUE(is_utf8("caf\xC3\xA9"));
  EXPECT_TRUE(is_utf8("\xE2\x82\xAC"));
  EXPECT_TRUE(is_utf8("\xF0\x9F\x90\xB1"));
  EXPECT_TRUE(is_utf8("\xF4\x8F\xBF\xBF"));  // U+10FFFF
}

TEST(Utf8Test, RefusesMalformedSequences) {
  EXPECT_FALSE(is_utf8("\x80"));              // continuation alone
  EXPECT_FALSE(is_utf8("caf\xC3"));           // cut off
  EXPECT_FALSE(is_utf8("\xC3("));             // no continuation
  EXPECT_FALSE(is_utf8("\xC0\xAF"));          // overlong '/'
  EXPECT_FALSE(is_utf8("\xE0\x80\xAF"));      // overlong
  EXPECT_FALSE(is_utf8("\xF0\x80\x80\xAF"));  // overlong
  EXPECT_FALSE(is_utf8("\xED\xA0\x80"));      // surrogate
  EXPECT_FALSE(is_utf8("\xF4\x90\x80\x80"));  // beyond U+10FFFF
  EXPECT_FALSE(is_utf8("\xFF"));
}

TEST(HexTest, WritesTwoDigitsAByte) {
  EXPECT_EQ(hex(std::as_bytes(std::span("\x00\x9f\xff", 3))), "009fff");
  EXPECT_EQ(hex(std::span<const std::byte>()), "");
  EXPECT_EQ(hex(std::uint64_t{0x0123456789ABCDEF}), "0123456789abcdef");
  EXPECT_EQ(hex(std::uint64_t{7}), "0000000000000007");
}

TEST(HexTest, KnowsDigitsOfTheRightNumberAndCase) {
  EXPECT_TRUE(is_hex("09af", 4));
  EXPECT_FALSE(is_hex("09af", 5));
  EXPECT_FALSE(is_hex("09AF", 4));
  EXPECT_FALSE(is_hex("09ag", 4));
}

TEST(QuotedTest, KeepsTextAsItIs) {
  EXPECT_EQ(in_quotes(""), "''");
  EXPECT_EQ(in_quotes("fused_conv2d 3×3 – ça va 🐈"), "'fused_conv2d 3×3 – ça va 🐈'");
}

TEST(QuotedTest, EscapesControlCharacters) {
  EXPECT_EQ(in_quotes("a\n\x1b[31m\x7f"), "'a\\x0a\\x1b[31m\\x7f'");
  EXPECT_EQ(in_quotes(std::string_view("\0", 1)), "'\\x00'");
  EXPECT_EQ(in_quotes("\xc2\x9b"), "'\\xc2\\x9b'");  // U+009B begins a terminal's sequence too
}

TEST(QuotedTest, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(in_quotes("\xff\xe4x"), "'\\xff\\xe4x'");
  EXPECT_EQ(in_quotes("\xc3"), "'\\xc3'");                             // cut short
  EXPECT_EQ(in_quotes("\xc0\xaf"), "'\\xc0\\xaf'");                    // overlong '/'
  EXPECT_EQ(in_quotes("\xe0\x80\xaf"), "'\\xe0\\x80\\xaf'");           // overlong
  EXPECT_EQ(in_quotes("\xed\xa0\x80"), "'\\xed\\xa0\\x80'");           // a surrogate
  EXPECT_EQ(in_quotes("\xf4\x90\x80\x80"), "'\\xf4\\x90\\x80\\x80'");  // beyond U+10FFFF
}

TEST(QuotedTest, ShortensBetweenCharacters) {
  EXPECT_EQ(in_quotes("abcdef", 3), "'abc…'");
  EXPECT_EQ(in_quotes("abc", 3), "'abc'");
  EXPECT_EQ(in_quotes("aéé", 2), "'aé…'");
}

TEST(TextTest, ReadsNumbers) {
  std::string_view rest = "12.5x";
  EXPECT_EQ(take_number<int>(rest), 12);
  EXPECT_EQ(rest, ".5x");
  EXPECT_EQ(take_number<int>(rest), std::nullopt);
  EXPECT_EQ(rest, ".5x");
  EXPECT_EQ(whole_number<double>("12.5"), 12.5);
  EXPECT_EQ(whole_number<std::int64_t>("-3"), -3);
  for (const char* text : {"", " 1", "1 ", "+1", "x", "1x", "300"}) {
    EXPECT_EQ(whole_number<std::uint8_t>(text), std::nullopt) << text;
  }
  EXPECT_EQ(hex_number("fF g"), 0xffU);
  EXPECT_EQ(hex_number("g"), std::nullopt);
}

TEST(TextTest, Trims) {
  EXPECT_EQ(trimmed(" \ta b\r\n"), "a b");
  EXPECT_EQ(trimmed(" \n"), "");
}

}  // namespace
}  // namespace run_model
