#include "base/file_kind.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>

namespace run_model {
namespace {

using namespace std::string_literals;

std::string kind(const std::string& content) {
  return file_kind(std::as_bytes(std::span(content)));
}

TEST(FileKindTest, KnowsWhatPeopleMixUp) {
  EXPECT_EQ(kind(""), "empty");
  EXPECT_EQ(kind("\x7f"
                 "ELF\2\1\1"),
            "an ELF file (a compiled library or program)");
  EXPECT_EQ(kind("\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7"s + "\0\0"s), "TVM parameters (.params)");
  EXPECT_EQ(kind("  {\"nodes\": []}"), "JSON text");
  EXPECT_EQ(kind("tabby\ntiger cat\n"), "text");
  EXPECT_EQ(kind("Vögel\n"), "text");
  EXPECT_EQ(kind("\x1f\x8b\x08"s), "a gzip archive");
  EXPECT_EQ(kind("\xcf\xfa\xed\xfe\7\0\0\1"s), "a macOS library (Mach-O)");
  EXPECT_EQ(kind("MZ\x90\0"s), "a Windows library (PE)");
  EXPECT_EQ(kind("\x89PNG\r\n"), "a PNG picture");
  EXPECT_EQ(kind(std::string(100, '\0')), "nothing but zero bytes");
  EXPECT_EQ(kind("\1\2\3\4"), "of no kind that run_model knows");
}

TEST(FileKindTest, FindsTarByItsHeaderInTheMiddle) {
  std::string tar(512, '\0');
  tar.replace(0, 6, "mod.so");
  tar.replace(257, 5, "ustar");
  EXPECT_EQ(kind(tar), "a tar archive");
  EXPECT_EQ(kind(tar.substr(0, 260)), "of no kind that run_model knows");
}

}  // namespace
}  // namespace run_model
