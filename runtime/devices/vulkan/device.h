// A Vulkan device as compiled code uses it.
#pragma once

#include <memory>

#include "runtime/devices/device.h"
#include "runtime/devices/vulkan/context.h"
#include "runtime/devices/vulkan/physical_device.h"

namespace run_model {

// `physical` must outlive it.
std::unique_ptr<Device> open_vulkan_device(const VulkanPhysicalDevice& physical, int index,
                                           const VulkanOptions& options = {});

}  // namespace run_model
