#include "runtime/cpu/list.h"

#include <gmock/gmock.h>

namespace run_model {
namespace {

using testing::ElementsAre;
using testing::Optional;

TEST(CpuList, Parses) {
  EXPECT_THAT(parse_cpu_list("3"), Optional(ElementsAre(3)));
  EXPECT_THAT(parse_cpu_list("0,2-4"), Optional(ElementsAre(0, 2, 3, 4)));
  EXPECT_THAT(parse_cpu_list(" 4-5,0,4\n"), Optional(ElementsAre(0, 4, 5)));
  EXPECT_THAT(parse_cpu_list("7-7"), Optional(ElementsAre(7)));
}

TEST(CpuList, RefusesWhatIsNone) {
  for (const char* text : {"", " ", ",", "1,", ",1", "a", "1-", "-1", "3-2", "1--2", "1 2", "0x1",
                           "65536", "1-99999999999", "1;2"}) {
    EXPECT_EQ(parse_cpu_list(text), std::nullopt) << text;
  }
}

TEST(CpuList, TextIsTheShortestList) {
  EXPECT_EQ(cpu_list_text(std::vector<int>{}), "");
  EXPECT_EQ(cpu_list_text(std::vector<int>{5}), "5");
  EXPECT_EQ(cpu_list_text(std::vector<int>{0, 1}), "0-1");
  EXPECT_EQ(cpu_list_text(std::vector<int>{0, 2, 3, 4, 8}), "0,2-4,8");
}

TEST(CpuList, TextIsReadBack) {
  for (unsigned bits = 1; bits < 256; ++bits) {
    std::vector<int> cpus;
    for (int cpu = 0; cpu < 8; ++cpu) {
      if (bits >> cpu & 1) cpus.push_back(cpu);
    }
    EXPECT_EQ(parse_cpu_list(cpu_list_text(cpus)), cpus) << bits;
  }
}

}  // namespace
}  // namespace run_model
