#include "runtime/devices/launch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include <run_model/error.h>
#include "runtime/devices/device_name.h"
#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

constexpr DLDataType kHandle{kDLOpaqueHandle, 64, 1};
constexpr DLDataType kInt32{kDLInt, 32, 1};
constexpr DLDataType kHalf{kDLFloat, 16, 1};

PackedValue whole(std::int64_t value) {
  PackedValue packed{};
  packed.v_int64 = value;
  return packed;
}

KernelInfo kernel_of(std::vector<DLDataType> types, std::vector<std::string> tags) {
  return {"k", std::move(types), std::move(tags)};
}

LaunchSize read(const KernelInfo& kernel, const std::vector<PackedValue>& values,
                const std::vector<int>& codes) {
  return LaunchReader(kernel).read(values, codes.data());
}

TEST(LaunchTest, ReadsSizesByTheirTags) {
  const KernelInfo kernel =
      kernel_of({kHandle}, {"blockIdx.y", "threadIdx.x", "threadIdx.z", "threadIdx.x", "blockIdx.x",
                            "tir.use_dyn_shared_memory"});
  const LaunchSize size =
      read(kernel, {whole(0), whole(7), whole(8), whole(2), whole(8), whole(0), whole(4096)},
           {kTypeNull, 0, 0, 0, 0, 0, 0});
  EXPECT_TRUE(has_elements(size.groups, {1, 7, 1}));
  EXPECT_TRUE(has_elements(size.threads, {8, 1, 2}));
  EXPECT_EQ(size.dynamic_shared_bytes, 4096U);
  EXPECT_TRUE(throws_error([] { LaunchReader(kernel_of({}, {"vthread"})); },
                           ErrorKind::kIncompatible, {"'k'", "'vthread'"}));
}

TEST(LaunchTest, RefusesArgumentsThatAreNotTheKernels) {
  const KernelInfo kernel = kernel_of({kHandle, kInt32, kHalf}, {"blockIdx.x"});
  const std::vector<int> codes{kTypeOpaqueHandle, kTypeInt, kTypeFloat, kTypeInt};
  const std::vector<PackedValue> values{whole(64), whole(-5), whole(0), whole(1)};
  EXPECT_EQ(read(kernel, values, codes).groups[0], 1U);
  const auto refused = [&](std::size_t index, std::int64_t value, int code) {
    std::vector<PackedValue> other = values;
    std::vector<int> other_codes = codes;
    other[index] = whole(value);
    other_codes[index] = code;
    return throws_error([&] { read(kernel, other, other_codes); }, ErrorKind::kModel, {"'k'"});
  };
  EXPECT_TRUE(refused(0, 64, kTypeInt));
  EXPECT_TRUE(refused(1, 0, kTypeFloat));
  EXPECT_TRUE(refused(1, std::int64_t{1} << 31, kTypeInt));
  EXPECT_TRUE(refused(2, 0, kTypeInt));
  EXPECT_TRUE(refused(3, -1, kTypeInt));
  EXPECT_TRUE(refused(3, 1, kTypeFloat));
  EXPECT_TRUE(throws_error([&] { read(kernel, {values[0]}, codes); }, ErrorKind::kModel, {"'k'"}));
}

TEST(LaunchTest, ComparesWithTheDevice) {
  const KernelInfo kernel = kernel_of({}, {});
  DeviceInfo info;
  info.threads_per_group = 256;
  info.group_size = {256, 256, 64};
  info.grid_size = {1000, 65535, 65535};
  info.shared_memory_bytes = 1 << 14;
  const auto refused = [&](const LaunchSize& size, std::string_view words) {
    return throws_error([&] { check_launch(kernel, size, info, "cuda:0 (a GPU)"); },
                        ErrorKind::kIncompatible, {"'k'", "cuda:0 (a GPU)", words});
  };
  check_launch(kernel, {{1000, 2, 3}, {32, 8, 1}, 1 << 14}, info, "cuda:0 (a GPU)");
  EXPECT_TRUE(refused({{1, 1, 1}, {32, 9, 1}, 0}, "288 threads"));
  EXPECT_TRUE(refused({{1, 1, 1}, {1, 1, 65}, 0}, "1 x 1 x 65"));
  EXPECT_TRUE(refused({{1001, 1, 1}, {1, 1, 1}, 0}, "1001 x 1 x 1"));
  EXPECT_TRUE(refused({{1, 1, 1}, {1, 1, 1}, (1 << 14) + 1}, "16385 bytes"));
  // What a driver does not say is not compared.
  check_launch(kernel, {{1001, 1, 1}, {1024, 1, 1}, 1 << 20}, {}, "cuda:0 (a GPU)");
}

TEST(LaunchTest, GivesScalarsInTheirOwnSize) {
  PackedValue real{};
  real.v_float64 = 1.5;
  const ScalarBytes half = scalar_bytes(real, kHalf);
  ASSERT_EQ(half.size, 2U);
  std::uint16_t bits = 0;
  std::memcpy(&bits, half.bytes.data(), sizeof(bits));
  EXPECT_EQ(bits, 0x3E00);
  const ScalarBytes negative = scalar_bytes(whole(-2), kInt32);
  ASSERT_EQ(negative.size, 4U);
  std::int32_t value = 0;
  std::memcpy(&value, negative.bytes.data(), sizeof(value));
  EXPECT_EQ(value, -2);
  EXPECT_EQ(scalar_bytes(whole(1), {kDLUInt, 1, 1}).size, 1U);
  EXPECT_EQ(scalar_bytes(whole(1), {kDLInt, 64, 1}).size, 8U);
}

TEST(DeviceNameTest, IsWhatUsersWrite) {
  EXPECT_EQ(parse_device_name("opencl:2").device_id, 2);
  EXPECT_EQ(parse_device_name("opencl:2").device_type, kDLOpenCL);
  EXPECT_EQ(parse_device_name("vulkan").device_type, kDLVulkan);
  EXPECT_EQ(parse_device_name("cpu").device_type, kDLCPU);
  EXPECT_EQ(device_name({kDLCUDA, 1}), "cuda:1");
  EXPECT_EQ(device_name({kDLCPU, 0}), "cpu");
  for (const char* text : {"", "gpu", "opencl:", "opencl:-1", "opencl:x", "opencl:1:2", "cpu:1",
                           "opencl:99999999999", "metal:0"}) {
    EXPECT_TRUE(throws_error([&] { parse_device_name(text); }, ErrorKind::kUsage, "is no device"))
        << text;
  }
}

}  // namespace
}  // namespace run_model
