// The Vulkan devices of this machine, before any is opened.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/devices/device.h"
#include "runtime/devices/drivers.h"
#include "runtime/devices/vulkan/functions.h"

namespace run_model {

// The library, and an instance for as long as the program runs: drivers register handlers for its
// end that must find what they left.
struct VulkanInstance {
  VulkanLibrary library;
  VulkanInstanceFunctions functions;
  VkInstance handle = VK_NULL_HANDLE;
};

struct VulkanPhysicalDevice {
  const VulkanInstance* instance = nullptr;
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  std::uint32_t version = 0;  // of Vulkan: what the device and the library both have
  VkPhysicalDeviceProperties properties{};
  VkPhysicalDeviceSubgroupProperties subgroups{};
  VkPhysicalDeviceMemoryProperties memory{};
  std::uint64_t largest_allocation = 0;
  std::uint32_t queue_family = 0;
  std::uint32_t time_stamp_bits = 0;
  DeviceInfo info;
  std::string unusable;  // why it cannot compute anything for us; empty where it can
};

// The devices that are there, real ones before those in software, discrete before integrated.
// Where there is none, `absence` says why. Never throws.
std::vector<VulkanPhysicalDevice> find_vulkan_devices(VulkanInstance& instance,
                                                      DeviceDriver::Absence& absence);

}  // namespace run_model
