#include "runtime/devices/vulkan/context.h"

#include <run_model/error.h>
#include "runtime/devices/device_name.h"

namespace run_model {

VulkanContext::VulkanContext(const VulkanPhysicalDevice& device, int index,
                             const VulkanOptions& options)
    : physical_(device),
      failures_(device_name({kDLVulkan, index}) + " (" + device.info.name + ")"),
      features_(device),
      options_(options) {
  if (options_.patience_nanoseconds == 0) {
    options_.patience_nanoseconds = patience_nanoseconds_with(device.info.software);
  }
  const float priority = 1;
  VkDeviceQueueCreateInfo queue{};
  queue.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
  queue.queueFamilyIndex = device.queue_family;
  queue.queueCount = 1;
  queue.pQueuePriorities = &priority;
  VkDeviceCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  create.pNext = features_.chain();
  create.queueCreateInfoCount = 1;
  create.pQueueCreateInfos = &queue;
  create.enabledExtensionCount = static_cast<std::uint32_t>(features_.extensions().size());
  create.ppEnabledExtensionNames = features_.extensions().data();
  const VulkanInstanceFunctions& instance = device.instance->functions;
  const VkResult result = instance.CreateDevice(device.handle, &create, nullptr, &handle_);
  if (result != VK_SUCCESS) {
    throw Error(
        ErrorKind::kIncompatible,
        device.info.name + " could not be opened with Vulkan (" + vulkan_result_name(result) + ")",
        "see whether another program uses all of it, and whether the driver is whole");
  }
  const std::string missing = load_functions(instance, handle_, vk_);
  if (!missing.empty()) {
    const auto destroy = reinterpret_cast<PFN_vkDestroyDevice>(
        instance.GetDeviceProcAddr(handle_, "vkDestroyDevice"));
    if (destroy != nullptr) destroy(handle_, nullptr);
    throw Error(ErrorKind::kIncompatible,
                "the Vulkan driver of " + device.info.name + " has no " + missing,
                "install a newer one");
  }
  vk_.GetDeviceQueue(handle_, device.queue_family, 0, &queue_);
}

VulkanContext::~VulkanContext() {
  if (!stuck_) vk_.DestroyDevice(handle_, nullptr);
}

void VulkanContext::fail(VkResult result, const std::string& what) const {
  const std::string said = vulkan_result_name(result);
  switch (result) {
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      failures_.fail(DeviceFault::kOutOfMemory, what, said);
    case VK_ERROR_DEVICE_LOST:
      failures_.fail(DeviceFault::kLost, what, said);
    case VK_TIMEOUT:
      stuck_ = true;
      failures_.fail_waiting(what, said, options_.patience_nanoseconds);
    default:
      failures_.fail(DeviceFault::kOther, what, said);
  }
}

}  // namespace run_model
