#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include <run_model/error.h>
#include "runtime/devices/drivers.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

TEST(VulkanDriverTest, ListsDevicesWithRealOnesFirst) {
  DeviceDriver& driver = vulkan_driver();
  EXPECT_EQ(driver.type(), kDLVulkan);
  EXPECT_EQ(driver.name(), "vulkan");
  ASSERT_EQ(driver.absence().reason, "") << driver.absence().hint;
  ASSERT_GE(driver.count(), 1U);
  bool software_seen = false;
  for (std::size_t i = 0; i < driver.count(); ++i) {
    const DeviceInfo info = driver.info(i);
    EXPECT_NE(info.name, "");
    EXPECT_THAT(info.driver, ::testing::StartsWith("Vulkan 1."));
    EXPECT_GT(info.memory_bytes, 0U);
    EXPECT_GE(info.largest_buffer_bytes, 1U << 27);  // what every implementation must allow
    EXPECT_GE(info.shared_memory_bytes, 16384U);
    EXPECT_GE(info.threads_per_group, 128U);
    EXPECT_GE(info.grid_size[0], 65535U);
    EXPECT_FALSE(software_seen && !info.software);
    software_seen |= info.software;
  }
}

TEST(VulkanDriverTest, NoDeviceAtAnIndexBeyond) {
  EXPECT_TRUE(throws_error([] { vulkan_driver().open(99); }, ErrorKind::kIncompatible,
                           {"vulkan:99", "vulkan:0"}));
  EXPECT_TRUE(
      throws_error([] { vulkan_driver().info(99); }, ErrorKind::kIncompatible, "vulkan:99"));
}

// Run where there is no driver (CMakeLists.txt).
TEST(VulkanAbsenceTest, DISABLED_IsSaid) {
  const char* const expected = std::getenv("EXPECTED_REASON");
  ASSERT_NE(expected, nullptr);
  DeviceDriver& driver = vulkan_driver();
  EXPECT_THAT(driver.absence().reason, ::testing::HasSubstr(expected));
  EXPECT_THAT(driver.absence().hint, ::testing::HasSubstr("install"));
  EXPECT_EQ(driver.count(), 0U);
  EXPECT_TRUE(throws_error([&] { driver.open(0); }, ErrorKind::kIncompatible,
                           {"vulkan:0 cannot be used", expected}));
}

}  // namespace
}  // namespace run_model
