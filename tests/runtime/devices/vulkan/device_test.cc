// On the first Vulkan device of this machine; numbers are reckoned here once more.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <run_model/error.h>
#include <run_model/packed_function.h>
#include <run_model/tensor.h>
#include "runtime/devices/code/code_cache.h"
#include "runtime/devices/device.h"
#include "runtime/devices/drivers.h"
#include "runtime/devices/vulkan/device.h"
#include "runtime/devices/vulkan/physical_device.h"
#include "tests/runtime/devices/vulkan/shaders.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

PackedValue handle(void* memory) {
  PackedValue value{};
  value.v_handle = memory;
  return value;
}
PackedValue number(std::int64_t integer) {
  PackedValue value{};
  value.v_int64 = integer;
  return value;
}
PackedValue number(double real) {
  PackedValue value{};
  value.v_float64 = real;
  return value;
}

LaunchSize size_of(std::uint64_t groups, std::uint64_t threads) {
  return {{groups, 1, 1}, {threads, 1, 1}, 0};
}

const VulkanPhysicalDevice& first_device() {
  static VulkanInstance instance;
  static DeviceDriver::Absence absence;
  static const std::vector<VulkanPhysicalDevice> devices = find_vulkan_devices(instance, absence);
  if (devices.empty()) throw Error(ErrorKind::kIncompatible, absence.reason, absence.hint);
  return devices[0];
}

// As the device is, and with copies by way of staging memory as on a GPU with memory of its own.
class VulkanDeviceTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    device_ = open_vulkan_device(first_device(), 0, {.staging_only = GetParam()});
  }

  template <typename T>
  void* upload(const std::vector<T>& values) {
    void* const memory = device_->allocate(values.size() * sizeof(T));
    device_->upload(memory, 0, values.data(), values.size() * sizeof(T));
    return memory;
  }
  template <typename T>
  std::vector<T> download(const void* memory, std::size_t count) {
    std::vector<T> values(count);
    device_->download(memory, 0, values.data(), count * sizeof(T));
    return values;
  }

  std::unique_ptr<Device> device_;
};

TEST_P(VulkanDeviceTest, MemoryIsZeroedAlignedAndCounted) {
  EXPECT_EQ(device_->id().device_type, kDLVulkan);
  EXPECT_EQ(device_->allocated_bytes(), 0U);
  std::vector<void*> all;
  for (const std::size_t bytes : {0U, 1U, 63U, 64U, 1000U, 3'000'000U}) {
    void* const memory = device_->allocate(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0U);
    EXPECT_THAT(download<std::uint8_t>(memory, bytes), Each(0));
    const std::vector<std::uint8_t> ones(bytes, 1);
    device_->upload(memory, 0, ones.data(), bytes);
    all.push_back(memory);
  }
  EXPECT_GE(device_->allocated_bytes(), 3'001'128U);
  for (void* memory : all) device_->free(memory);
  EXPECT_EQ(device_->allocated_bytes(), 0U);
  device_->free(nullptr);
  // What was used before is zero again.
  void* const again = device_->allocate(1000);
  EXPECT_THAT(download<std::uint8_t>(again, 1000), Each(0));
  device_->free(again);
}

TEST_P(VulkanDeviceTest, ManySmallBuffersShareMemory) {
  // More than maxMemoryAllocationCount is on most devices.
  std::vector<void*> all;
  for (std::int32_t i = 0; i < 5000; ++i) all.push_back(upload(std::vector<std::int32_t>(9, i)));
  for (std::size_t i = 0; i < all.size(); i += 2) device_->free(all[i]);
  for (std::size_t i = 0; i < all.size(); i += 2) {
    all[i] = upload(std::vector<std::int32_t>(20, -static_cast<std::int32_t>(i)));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto expected = static_cast<std::int32_t>(i) * (i % 2 == 0 ? -1 : 1);
    EXPECT_THAT(download<std::int32_t>(all[i], 9), Each(expected));
    device_->free(all[i]);
  }
}

TEST_P(VulkanDeviceTest, CopiesAtAnyOffset) {
  std::vector<std::uint8_t> bytes(300);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7);
  void* const a = upload(bytes);
  void* const b = device_->allocate(200);
  device_->copy(a, 3, b, 5, 101);
  device_->copy(a, 0, b, 0, 0);
  std::vector<std::uint8_t> expected(200);
  std::copy_n(bytes.begin() + 3, 101, expected.begin() + 5);
  EXPECT_EQ(download<std::uint8_t>(b, 200), expected);
  device_->upload(b, 150, bytes.data(), 50);
  std::vector<std::uint8_t> tail(10);
  device_->download(b, 160, tail.data(), 10);
  EXPECT_EQ(tail, std::vector<std::uint8_t>(bytes.begin() + 10, bytes.begin() + 20));
  EXPECT_TRUE(throws_error([&] { device_->upload(a, 250, bytes.data(), 300); },
                           ErrorKind::kInternal, device_->info().name));
  device_->free(a);
  device_->free(b);
}

TEST_P(VulkanDeviceTest, PinnedMemoryServesCopies) {
  std::shared_ptr<void> pinned = device_->allocate_host(1001);
  EXPECT_TRUE(is_aligned(pinned.get()));
  std::memset(pinned.get(), 42, 1001);
  void* const memory = device_->allocate(1001);
  device_->upload(memory, 0, pinned.get(), 1001);
  std::memset(pinned.get(), 0, 1001);
  device_->download(memory, 1, static_cast<std::byte*>(pinned.get()) + 1, 1000);
  EXPECT_EQ(static_cast<const char*>(pinned.get())[0], 0);
  EXPECT_EQ(static_cast<const char*>(pinned.get())[1000], 42);
  device_->free(memory);
  device_.reset();
  std::memset(pinned.get(), 1, 1001);  // stays without the device
}

TEST_P(VulkanDeviceTest, RunsAKernelWithPushConstants) {
  for (const char* file : {"scale_add", "scale_add_1.0"}) {
    ShaderSet set;
    set.add("scale_add", {kBuffer, kBuffer, kBuffer, kFloat, kInt32}, shader_words(file));
    std::vector<float> a(1000);
    std::vector<float> b(1000);
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<float>(i);
      b[i] = 0.25F * static_cast<float>(i % 17);
    }
    void* const in_a = upload(a);
    void* const in_b = upload(b);
    void* const sum = device_->allocate(4000);
    const auto kernel = device_->kernel(set.code(), "scale_add");
    const std::vector<PackedValue> arguments{handle(in_a), handle(in_b), handle(sum), number(-1.5),
                                             number(std::int64_t{990})};
    kernel->launch(arguments, size_of(16, 64));
    const auto result = download<float>(sum, 1000);
    for (std::size_t i = 0; i < 1000; ++i) {
      EXPECT_EQ(result[i], i < 990 ? a[i] - 1.5F * b[i] : 0.0F) << i;
    }
    for (void* memory : {in_a, in_b, sum}) device_->free(memory);
  }
}

TEST_P(VulkanDeviceTest, RunsAKernelWithScalarsInABuffer) {
  ShaderSet set;
  std::vector<DLDataType> types{kBuffer, kBuffer, kInt32};
  types.resize(22, kFloat);
  set.add("polynomial", types, shader_words("polynomial"), 1);
  std::vector<float> x(96);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.02F * static_cast<float>(i) - 1.0F;
  void* const in = upload(x);
  void* const out = device_->allocate(96 * 4);
  std::vector<PackedValue> arguments{handle(in), handle(out), number(std::int64_t{90})};
  for (int k = 0; k < 19; ++k) arguments.push_back(number(0.5 * k - 3.0));
  const auto kernel = device_->kernel(set.code(), "polynomial");
  kernel->launch(arguments, {{3, 1, 1}, {16, 2, 1}, 0});
  const auto y = download<float>(out, 96);
  for (std::size_t i = 0; i < 96; ++i) {
    const double t = x[i];
    const double expected = i < 90 ? -3.0 + t * (-2.5 + t * (-2.0 + t * (5.5 + t * 6.0))) : 0.0;
    EXPECT_NEAR(y[i], expected, 1e-5) << i;
  }
  device_->free(in);
  device_->free(out);
}

TEST_P(VulkanDeviceTest, PassesWideScalars) {
  ShaderSet set;
  set.add("wide_scalars", {kBuffer, kInt64, kInt32, kFloat64, kUInt32});
  void* const out = device_->allocate(32);
  const auto kernel = device_->kernel(set.code(), "wide_scalars");
  const std::vector<PackedValue> arguments{handle(out), number(std::int64_t{-0x123456789abcdef}),
                                           number(std::int64_t{-7}), number(1e15),
                                           number(std::int64_t{0xfffffffe})};
  kernel->launch(arguments, size_of(1, 1));
  EXPECT_THAT(download<std::int64_t>(out, 4),
              ElementsAre(-0x123456789abcdef, -7, 1'000'000'000'000'000, 0xfffffffe));
  device_->free(out);
}

TEST_P(VulkanDeviceTest, SharesMemoryWithinAGroup) {
  ShaderSet set;
  set.add("group_sum", {kBuffer, kBuffer});
  std::vector<std::int32_t> x(1280);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int32_t>(i * i % 1009);
  void* const in = upload(x);
  void* const out = device_->allocate(40);
  const std::vector<PackedValue> arguments{handle(in), handle(out)};
  device_->kernel(set.code(), "group_sum")->launch(arguments, size_of(10, 128));
  std::vector<std::int32_t> expected(10);
  for (std::size_t i = 0; i < x.size(); ++i) expected[i / 128] += x[i];
  EXPECT_EQ(download<std::int32_t>(out, 10), expected);
  device_->free(in);
  device_->free(out);
}

// x after `steps` launches of step.comp.
std::int32_t stepped(std::int32_t x, int steps) {
  auto value = static_cast<std::uint32_t>(x);
  for (int i = 0; i < steps; ++i) value = 3 * value + 1;
  return static_cast<std::int32_t>(value);
}

TEST_P(VulkanDeviceTest, KeepsTheOrderOfLaunchesAndCopies) {
  ShaderSet set;
  set.add("step", {kBuffer});
  void* const whole = device_->allocate(2048);
  ASSERT_LE(device_->part_alignment(), 1024U);
  void* const first = device_->part(whole, 0, 1024);
  void* const second = device_->part(whole, 1024, 1024);
  const auto step = device_->kernel(set.code(), "step");
  const std::vector<PackedValue> on_first{handle(first)};
  const std::vector<PackedValue> on_second{handle(second)};
  // Enough for several batches.
  for (int i = 0; i < 300; ++i) {
    step->launch(on_first, size_of(8, 32));
    if (i % 3 == 0) step->launch(on_second, size_of(8, 32));
    if (i == 200) device_->submit();
  }
  const std::vector<std::int32_t> fives(256, 5);
  device_->copy(first, 0, second, 512, 512);
  device_->upload(first, 0, fives.data(), 1024);
  step->launch(on_first, size_of(8, 32));
  const auto result = download<std::int32_t>(whole, 512);
  for (std::size_t i = 0; i < 512; ++i) {
    const std::int32_t expected = i < 256 ? 16 : (i < 384 ? stepped(0, 100) : stepped(0, 300));
    ASSERT_EQ(result[i], expected) << i;
  }
  device_->free(first);
  device_->free(second);
  device_->free(whole);
}

TEST_P(VulkanDeviceTest, RepeatsWhatWasRecorded) {
  ShaderSet set;
  set.add("step", {kBuffer});
  void* const x = device_->allocate(512);
  void* const y = device_->allocate(512);
  const auto step = device_->kernel(set.code(), "step");
  const std::vector<PackedValue> on_x{handle(x)};
  const auto recording = device_->record([&] {
    step->launch(on_x, size_of(4, 32));
    step->launch(on_x, size_of(4, 32));
    device_->copy(x, 0, y, 0, 512);
  });
  ASSERT_NE(recording, nullptr);
  EXPECT_THAT(download<std::int32_t>(x, 128), Each(0));  // nothing was done
  step->launch(on_x, size_of(4, 32));
  for (int i = 0; i < 10; ++i) recording->replay();
  step->launch(on_x, size_of(4, 32));
  EXPECT_THAT(download<std::int32_t>(y, 128), Each(stepped(0, 21)));
  EXPECT_THAT(download<std::int32_t>(x, 128), Each(stepped(0, 22)));
  const std::vector<std::int32_t> zeros(128);
  device_->upload(x, 0, zeros.data(), 512);
  recording->replay();
  device_->upload(x, 0, zeros.data(), 512);  // after the replay, in the order of the calls
  EXPECT_THAT(download<std::int32_t>(y, 128), Each(stepped(0, 2)));
  EXPECT_EQ(device_->record([] {}), nullptr);
  EXPECT_TRUE(throws_error([&] { device_->record([&] { device_->wait(); }); }, ErrorKind::kInternal,
                           "a wait"));
  step->launch(on_x, size_of(4, 32));
  EXPECT_THAT(download<std::int32_t>(x, 128), Each(1));
  device_->free(x);
  device_->free(y);
}

TEST_P(VulkanDeviceTest, MarksTellTheTimeOfLaunches) {
  ShaderSet set;
  set.add("long_loop", {kBuffer, kUInt32});
  constexpr std::uint64_t kManyGroups = 1000;
  void* const x = device_->allocate(kManyGroups * 64 * 4);
  const auto loop = device_->kernel(set.code(), "long_loop");
  const auto launch = [&](std::uint64_t groups) {
    loop->launch(std::vector<PackedValue>{handle(x), number(std::int64_t{5000})},
                 size_of(groups, 64));
  };
  launch(1);
  device_->wait();
  const Device::Mark begin = device_->mark();
  launch(kManyGroups / 100);
  const Device::Mark middle = device_->mark();
  launch(kManyGroups);
  const Device::Mark end = device_->mark();
  const double brief = device_->seconds_between(begin, middle);
  const double lengthy = device_->seconds_between(middle, end);
  EXPECT_GT(brief, 0.0);
  EXPECT_GT(lengthy, 4 * brief);
  EXPECT_NEAR(device_->seconds_between(begin, end), brief + lengthy, 1e-6);
  device_->forget_marks();
  EXPECT_EQ(device_->mark(), 0U);
  device_->free(x);
}

TEST_P(VulkanDeviceTest, CompilesMoreKernelsThanAreAskedFor) {
  // One of them cannot be compiled; only who asks for it hears of that.
  ShaderSet set;
  set.add("scale_add", {kBuffer, kBuffer, kBuffer, kFloat, kInt32});
  set.add("step", {kBuffer});
  set.add("much_shared", {kBuffer});
  set.add("group_sum", {kBuffer, kBuffer});
  EXPECT_NE(device_->kernel(set.code(), "group_sum"), nullptr);
  EXPECT_TRUE(throws_error([&] { device_->kernel(set.code(), "much_shared"); },
                           ErrorKind::kIncompatible,
                           {"'much_shared' shares 1024 KiB", device_->info().name}));
  EXPECT_NE(device_->kernel(set.code(), "step"), nullptr);
  EXPECT_TRUE(throws_error([&] { device_->kernel(set.code(), "none"); }, ErrorKind::kMismatch,
                           "no kernel 'none'"));
}

TEST_P(VulkanDeviceTest, RefusesShadersThatDoNotFit) {
  const auto fails = [this](const ShaderSet& set, ErrorKind kind, const std::string& text) {
    const std::string kernel = set.code()->kernels[0].name;
    EXPECT_TRUE(throws_error([&] { device_->kernel(set.code(), kernel); }, kind,
                             {"'" + kernel + "'", text}));
  };
  fails(ShaderSet().add("many_threads", {kBuffer}), ErrorKind::kIncompatible,
        "groups of 1024 × 64 × 1 threads");
  fails(ShaderSet().add("step", {}), ErrorKind::kMismatch, "it takes 0 buffers");
  fails(ShaderSet().add("scale_add", {kBuffer, kBuffer, kBuffer, kFloat}), ErrorKind::kMismatch,
        "reads a scalar of 4 bytes at byte 8");
  fails(ShaderSet().add("scale_add", {kBuffer, kBuffer, kBuffer, kFloat64, kInt32}),
        ErrorKind::kMismatch, "reads a scalar of 4 bytes at byte 0");
  fails(ShaderSet().add("polynomial", {kBuffer, kBuffer, kInt32}), ErrorKind::kMismatch,
        "a uniform buffer at binding 2");
  std::vector<DLDataType> many{kBuffer, kBuffer, kBuffer, kFloat};
  many.resize(4000, kInt32);
  fails(ShaderSet().add("scale_add", many), ErrorKind::kIncompatible, "bytes of scalars");
  std::vector<std::uint32_t> words = shader_words("step");
  words[1] = 0x00010900;
  fails(ShaderSet().add("step", {kBuffer}, words), ErrorKind::kIncompatible, "SPIR-V 1.9");
  words = shader_words("step");
  words[6] = 2;  // OpCapability Geometry
  fails(ShaderSet().add("step", {kBuffer}, words), ErrorKind::kIncompatible, "capability 2");
  words = shader_words("step");
  words.pop_back();
  fails(ShaderSet().add("step", {kBuffer}, words), ErrorKind::kFormat, "malformed");
}

TEST_P(VulkanDeviceTest, RefusesLaunchesThatDoNotFit) {
  ShaderSet set;
  set.add("step", {kBuffer});
  void* const x = device_->allocate(512);
  const auto step = device_->kernel(set.code(), "step");
  const std::vector<PackedValue> on_x{handle(x)};
  const auto fails = [&](const std::vector<PackedValue>& arguments, const LaunchSize& size,
                         const std::string& text) {
    EXPECT_TRUE(throws_error([&] { step->launch(arguments, size); }, ErrorKind::kMismatch,
                             {"'step'", text}));
  };
  fails(on_x, size_of(4, 64), "groups of 32 threads");
  fails({handle(nullptr)}, size_of(4, 32), "no buffer");
  fails(on_x, {{4, 1, 1}, {32, 1, 1}, 16}, "dynamic shared memory");
  device_->free(x);
}

TEST_P(VulkanDeviceTest, RefusesMoreMemoryThanThereIs) {
  const std::uint64_t most = device_->info().largest_buffer_bytes;
  EXPECT_TRUE(throws_error([&] { device_->allocate(static_cast<std::size_t>(most) + 1); },
                           ErrorKind::kIncompatible, device_->info().name));
  EXPECT_EQ(device_->allocated_bytes(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Memory, VulkanDeviceTest, ::testing::Bool(), [](const auto& test) {
  return std::string(test.param ? "Staging" : "Direct");
});

TEST(VulkanCodeCacheTest, KeepsWhatIsCompiledAndSurvivesDamage) {
  const TemporaryFolder folder;
  const CodeCache disk(folder.path());
  ShaderSet set;
  set.add("step", {kBuffer}).add("group_sum", {kBuffer, kBuffer});
  const auto entries = [&folder] {
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
      files.push_back(file.path());
    }
    return files;
  };
  const auto run = [&] {
    const auto device = open_vulkan_device(first_device(), 0, {.disk = &disk});
    void* const x = device->allocate(512);
    const auto step = device->kernel(set.code(), "step");
    device->kernel(set.code(), "group_sum");
    step->launch(std::vector<PackedValue>{handle(x)}, size_of(4, 32));
    std::vector<std::int32_t> values(128);
    device->download(x, 0, values.data(), 512);
    EXPECT_THAT(values, Each(1));
    device->free(x);
  };
  run();
  ASSERT_EQ(entries().size(), 1U);
  const auto written = std::filesystem::last_write_time(entries()[0]);
  run();
  ASSERT_EQ(entries().size(), 1U);
  EXPECT_GE(std::filesystem::last_write_time(entries()[0]), written);
  std::filesystem::resize_file(entries()[0], 120);
  run();
  EXPECT_NE(std::filesystem::file_size(entries()[0]), 120U);
  // Other code has an entry of its own.
  set = ShaderSet();
  set.add("group_sum", {kBuffer, kBuffer}).add("step", {kBuffer});
  run();
  EXPECT_EQ(entries().size(), 2U);
}

// In a process of its own, which ends while the device still works.
TEST(VulkanTimeOutDeathTest, IsSaidAndDoesNotHang) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto time_out = [] {
    std::string said;
    {
      const auto device = open_vulkan_device(first_device(), 0, {.patience_nanoseconds = 1});
      ShaderSet set;
      set.add("long_loop", {kBuffer, kUInt32});
      void* const x = device->allocate(std::size_t{256} * 2000);
      const auto loop = device->kernel(set.code(), "long_loop");
      loop->launch(std::vector<PackedValue>{handle(x), number(std::int64_t{30000})},
                   size_of(2000, 64));
      try {
        device->wait();
      } catch (const Error& error) {
        said = error.what();
      }
      device->free(x);
    }
    std::cerr << said << std::endl;
    _exit(said.empty() ? 1 : 0);
  };
  EXPECT_EXIT(time_out(), ::testing::ExitedWithCode(0),
              "did not end in time while running kernels");
}

}  // namespace
}  // namespace run_model
