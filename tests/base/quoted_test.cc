#include "base/quoted.h"

#include <gtest/gtest.h>

namespace run_model {
namespace {

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

}  // namespace
}  // namespace run_model
