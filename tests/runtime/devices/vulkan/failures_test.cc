// What Vulkan's drivers say of lost devices and too little memory, said here by functions in the
// driver's place.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/error.h>
#include "runtime/devices/vulkan/device.h"
#include "runtime/devices/vulkan/physical_device.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

struct Failures {
  PFN_vkGetDeviceProcAddr original = nullptr;
  PFN_vkWaitForFences wait = nullptr;
  PFN_vkQueueSubmit submit = nullptr;
  PFN_vkAllocateMemory allocate = nullptr;
  // What they give instead.
  VkResult of_wait = VK_SUCCESS;
  VkResult of_submit = VK_SUCCESS;
  VkResult of_allocate = VK_SUCCESS;
} failures;

VkResult wait_for_fences(VkDevice device, std::uint32_t count, const VkFence* fences, VkBool32 all,
                         std::uint64_t patience) {
  const VkResult done = failures.wait(device, count, fences, all, patience);
  return failures.of_wait != VK_SUCCESS ? failures.of_wait : done;
}
VkResult queue_submit(VkQueue queue, std::uint32_t count, const VkSubmitInfo* submits,
                      VkFence fence) {
  if (failures.of_submit != VK_SUCCESS) return failures.of_submit;
  return failures.submit(queue, count, submits, fence);
}
VkResult allocate_memory(VkDevice device, const VkMemoryAllocateInfo* info,
                         const VkAllocationCallbacks* callbacks, VkDeviceMemory* memory) {
  if (failures.of_allocate != VK_SUCCESS) return failures.of_allocate;
  return failures.allocate(device, info, callbacks, memory);
}

PFN_vkVoidFunction find_function(VkDevice device, const char* name) {
  const PFN_vkVoidFunction found = failures.original(device, name);
  const std::string_view wanted = name;
  if (wanted == "vkWaitForFences") {
    failures.wait = reinterpret_cast<PFN_vkWaitForFences>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&wait_for_fences);
  }
  if (wanted == "vkQueueSubmit") {
    failures.submit = reinterpret_cast<PFN_vkQueueSubmit>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&queue_submit);
  }
  if (wanted == "vkAllocateMemory") {
    failures.allocate = reinterpret_cast<PFN_vkAllocateMemory>(found);
    return reinterpret_cast<PFN_vkVoidFunction>(&allocate_memory);
  }
  return found;
}

class VulkanFailuresTest : public ::testing::Test {
 protected:
  VulkanFailuresTest() {
    static VulkanInstance instance;
    static DeviceDriver::Absence absence;
    static const std::vector<VulkanPhysicalDevice> devices = [] {
      auto found = find_vulkan_devices(instance, absence);
      failures.original = instance.functions.GetDeviceProcAddr;
      instance.functions.GetDeviceProcAddr = &find_function;
      return found;
    }();
    failures.of_wait = failures.of_submit = failures.of_allocate = VK_SUCCESS;
    // By way of staging memory, so that copies are commands.
    device_ = open_vulkan_device(devices.at(0), 0, {.staging_only = true});
    memory_ = device_->allocate(64);
  }
  ~VulkanFailuresTest() override { device_->free(memory_); }

  void upload() { device_->upload(memory_, 0, bytes_.data(), bytes_.size()); }
  void download() { device_->download(memory_, 0, bytes_.data(), bytes_.size()); }

  std::array<char, 64> bytes_{};
  std::unique_ptr<Device> device_;
  void* memory_ = nullptr;
};

std::string sentence_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kModel);
    return error.what();
  }
  return "";
}

TEST_F(VulkanFailuresTest, LostDevicesStayLost) {
  upload();
  failures.of_wait = VK_ERROR_DEVICE_LOST;
  const std::string said = sentence_of([this] { device_->wait(); });
  EXPECT_NE(said.find("device vulkan:0 ("), std::string::npos) << said;
  EXPECT_NE(said.find("was lost while running kernels (VK_ERROR_DEVICE_LOST); "), std::string::npos)
      << said;
  EXPECT_NE(said.find("start the program again"), std::string::npos) << said;
  failures.of_wait = VK_SUCCESS;  // this driver would go on
  EXPECT_EQ(sentence_of([this] { device_->wait(); }), said);
  EXPECT_EQ(sentence_of([this] { device_->submit(); }), said);
  EXPECT_EQ(sentence_of([this] { upload(); }), said);
  EXPECT_EQ(sentence_of([this] { download(); }), said);
  EXPECT_EQ(sentence_of([this] { device_->allocate(64); }), said);
  EXPECT_EQ(sentence_of([this] { device_->allocate_host(64); }), said);
}

TEST_F(VulkanFailuresTest, LossShowsWhereWorkIsHandedOver) {
  upload();
  failures.of_submit = VK_ERROR_DEVICE_LOST;
  const std::string said = sentence_of([this] { download(); });
  EXPECT_NE(said.find("was lost while launching kernels"), std::string::npos) << said;
  failures.of_submit = VK_SUCCESS;
  EXPECT_EQ(sentence_of([this] { download(); }), said);
}

TEST_F(VulkanFailuresTest, MemoryMayBeThereLater) {
  constexpr std::size_t kOwnBlock = std::size_t{4} << 20;
  for (const VkResult code : {VK_ERROR_OUT_OF_DEVICE_MEMORY, VK_ERROR_OUT_OF_HOST_MEMORY}) {
    failures.of_allocate = code;
    EXPECT_TRUE(throws_error(
        [&] { device_->allocate(kOwnBlock); }, ErrorKind::kModel,
        {"device vulkan:0 (",
         "ran out of memory while allocating 4194304 bytes (" + vulkan_result_name(code) + ")",
         "take a smaller model"}));
  }
  failures.of_allocate = VK_SUCCESS;
  device_->free(device_->allocate(kOwnBlock));
}

}  // namespace
}  // namespace run_model
