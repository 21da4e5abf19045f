#include "base/utf8.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace run_model
