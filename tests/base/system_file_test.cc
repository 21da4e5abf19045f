#include "base/system_file.h"

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace run_model {
namespace {

TEST(SystemFile, ReadsTheStart) {
  const TemporaryFolder folder;
  const auto file = folder.write("f", "first\nsecond\n");
  EXPECT_EQ(read_system_file(file), "first\nsecond\n");
  EXPECT_EQ(read_system_file(file, 3), "fir");
  EXPECT_EQ(first_line(file), "first");
  EXPECT_EQ(read_system_file(folder / "none"), "");
  EXPECT_EQ(first_line(folder / "none"), "");
  EXPECT_EQ(read_system_file(folder.path()), "");
}

TEST(SystemFile, ReadsNumbers) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_number(folder.write("a", "1024\n")), 1024U);
  EXPECT_EQ(read_number(folder.write("b", "0x00000000410fd034\n")), 0x410fd034U);
  EXPECT_EQ(read_number(folder.write("c", "48K")), 48U);
  for (const char* text : {"", "x", "-5", "0x", "<unknown>", "99999999999999999999999"}) {
    EXPECT_EQ(read_number(folder.write("d", text)), std::nullopt) << text;
  }
  EXPECT_EQ(read_number(folder / "none"), std::nullopt);
}

TEST(SystemFile, FindsFields) {
  constexpr std::string_view kText =
      "Name:\trun\nVmRSS:\t    1696 kB \nRss\nCPU part\t: 0xd08\nPss_Dirty:  1 kB\nPss: 2 kB\n"
      "nr_throttled 7";
  EXPECT_EQ(field(kText, "VmRSS"), "1696 kB");
  EXPECT_EQ(field(kText, "CPU part"), "0xd08");
  EXPECT_EQ(field(kText, "Pss"), "2 kB");
  EXPECT_EQ(field(kText, "nr_throttled"), "7");
  EXPECT_EQ(field(kText, "Rss"), "");
  EXPECT_EQ(field(kText, "Vm"), "");
  EXPECT_EQ(field("", "Name"), "");
}

}  // namespace
}  // namespace run_model
