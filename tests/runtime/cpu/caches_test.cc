#include "runtime/cpu/caches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/temporary_folder.h"

namespace run_model {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CachesTest : public ::testing::Test {
 protected:
  void write(int index, const std::string& level, const std::string& type, const std::string& size,
             const std::string& shared) {
    const std::string cache =
        "sys/devices/system/cpu/cpu3/cache/index" + std::to_string(index) + "/";
    root_.write(cache + "level", level + "\n");
    root_.write(cache + "type", type + "\n");
    root_.write(cache + "size", size + "\n");
    root_.write(cache + "shared_cpu_list", shared + "\n");
  }

  TemporaryFolder root_;
};

TEST_F(CachesTest, AreListedFromTheNearestOn) {
  write(0, "1", "Data", "48K", "3");
  write(1, "1", "Instruction", "32K", "3");
  write(2, "2", "Unified", "2M", "2-3");
  const std::vector<CpuCache> caches = cpu_caches(3, root_.path());
  ASSERT_EQ(caches.size(), 3U);
  EXPECT_EQ(caches[0].bytes, 48U << 10);
  EXPECT_FALSE(caches[1].holds_data());
  EXPECT_TRUE(caches[2].holds_data());
  EXPECT_EQ(caches[2].level, 2);
  EXPECT_EQ(caches[2].bytes, 2U << 20);
  EXPECT_THAT(caches[2].shared_by, ElementsAre(2, 3));
}

TEST_F(CachesTest, WhatCannotBeReadIsNotKnown) {
  EXPECT_THAT(cpu_caches(3, root_.path()), IsEmpty());
  write(0, "1", "Data", "32X", "all");
  write(1, "2", "Unified", "9999999999999999K", "3");
  write(2, "third", "Unified", "1M", "3");
  const std::vector<CpuCache> caches = cpu_caches(3, root_.path());
  ASSERT_EQ(caches.size(), 2U);
  EXPECT_EQ(caches[0].bytes, 0U);
  EXPECT_THAT(caches[0].shared_by, IsEmpty());
  EXPECT_EQ(caches[1].bytes, 0U);
}

}  // namespace
}  // namespace run_model
