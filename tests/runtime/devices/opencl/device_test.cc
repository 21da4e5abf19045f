// Memory, copies and times of the first OpenCL device of this machine.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <run_model/error.h>
#include <run_model/tensor.h>
#include "runtime/devices/drivers.h"
#include "runtime/devices/open_device.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes bytes_on(Device& device, const void* memory, std::size_t count) {
  Bytes bytes(count, 0xEE);
  device.download(memory, 0, bytes.data(), count);
  return bytes;
}

TEST(OpenClDeviceTest, DescribesItself) {
  ASSERT_EQ(opencl_driver().absence().reason, "");
  ASSERT_GT(opencl_driver().count(), 0U);
  const DeviceInfo info = opencl_driver().info(0);
  EXPECT_NE(info.name, "");
  EXPECT_TRUE(info.driver.starts_with("OpenCL ")) << info.driver;
  EXPECT_GT(info.memory_bytes, 0U);
  EXPECT_GT(info.threads_per_group, 0U);
  EXPECT_GT(info.group_size[0], 0U);
  const std::size_t beyond = opencl_driver().count();
  EXPECT_TRUE(throws_error([&] { opencl_driver().info(beyond); }, ErrorKind::kIncompatible,
                           {"there is no device opencl:" + std::to_string(beyond)}));
}

TEST(OpenClDeviceTest, ZeroesAlignsAndCountsMemory) {
  const std::unique_ptr<Device> device = opencl_driver().open(0);
  for (const std::size_t bytes : {0U, 1U, 63U, 1000U, 3'000'000U}) {
    void* memory = device->allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0U);
    EXPECT_EQ(bytes_on(*device, memory, bytes), Bytes(bytes, 0));
    EXPECT_GE(device->allocated_bytes(), bytes);
    device->free(memory);
    EXPECT_EQ(device->allocated_bytes(), 0U);
  }
  EXPECT_TRUE(throws_error([&] { device->allocate(std::size_t{1} << 60); },
                           ErrorKind::kIncompatible, {"device opencl:0 (", "1152921504606846976"}));
}

TEST(OpenClDeviceTest, CopiesEverySide) {
  const std::unique_ptr<Device> device = opencl_driver().open(0);
  const std::size_t step = device->part_alignment();
  void* whole = device->allocate(4 * step);
  void* part = device->part(whole, 2 * step, step);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(part) % 64, 0U);
  const auto host = device->allocate_host(step);
  EXPECT_TRUE(is_aligned(host.get()));
  std::memset(host.get(), 7, step);
  device->upload(part, 0, host.get(), step);
  device->copy(part, 1, whole, 0, step - 1);
  Bytes expected(4 * step, 0);
  std::fill_n(expected.begin(), step - 1, 7);
  std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(2 * step), step, 7);
  EXPECT_EQ(bytes_on(*device, whole, 4 * step), expected);
  device->free(part);
  device->free(whole);
}

TEST(OpenClDeviceTest, HostMemoryMayOutliveTheDevice) {
  std::unique_ptr<Device> device = opencl_driver().open(0);
  const auto host = device->allocate_host(100);
  device.reset();
  std::memset(host.get(), 1, 100);
}

TEST(OpenClDeviceTest, NotesTimesBetweenMarks) {
  const std::unique_ptr<Device> device = opencl_driver().open(0);
  void* memory = device->allocate(1 << 20);
  const Bytes bytes(1 << 20, 1);
  const Device::Mark start = device->mark();
  EXPECT_EQ(device->seconds_between(start, device->mark()), 0);
  device->upload(memory, 0, bytes.data(), bytes.size());
  const Device::Mark end = device->mark();
  EXPECT_GT(device->seconds_between(start, end), 0);
  device->forget_marks();
  EXPECT_EQ(bytes_on(*device, memory, bytes.size()), bytes);
  device->free(memory);
}

TEST(OpenClDeviceTest, IsSharedWhileSomebodyHoldsIt) {
  const auto first = open_device({kDLOpenCL, 0});
  EXPECT_EQ(open_device({kDLOpenCL, 0}), first);
  void* small = first->workspace().allocate(100);
  void* other = first->workspace().allocate(100);
  EXPECT_NE(small, other);
  EXPECT_TRUE(first->workspace().free(small));
  EXPECT_FALSE(first->workspace().free(small));
  EXPECT_EQ(first->workspace().allocate(50), small);
  EXPECT_EQ(first->workspace().held_bytes(), 200U);
}

}  // namespace
}  // namespace run_model
