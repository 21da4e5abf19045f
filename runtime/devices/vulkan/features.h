// What shaders may use on a device, and whether one keeps to it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/devices/code/device_code.h"
#include "runtime/devices/vulkan/physical_device.h"
#include "runtime/devices/vulkan/spirv.h"

namespace run_model {

class VulkanFeatures {
 public:
  // All that the device has of what compiled code may want.
  explicit VulkanFeatures(const VulkanPhysicalDevice& device);
  VulkanFeatures(const VulkanFeatures&) = delete;
  VulkanFeatures& operator=(const VulkanFeatures&) = delete;

  // For VkDeviceCreateInfo: switches them on.
  const void* chain() const { return &basic_; }
  const std::vector<const char*>& extensions() const { return extensions_; }

  // Throws Error(kIncompatible) where the shader needs what the device lacks, and Error(kMismatch)
  // where it is not what `kernel` says.
  void check(const ShaderFacts& shader, const ShaderCode& code, const KernelInfo& kernel) const;

 private:
  // Whether a capability of SPIR-V may be declared; nothing for those that no compiled code has.
  std::string missing_for(std::uint32_t capability) const;
  void check_interface(const ShaderFacts& shader, const ShaderCode& code,
                       const KernelInfo& kernel) const;
  void check_group(const ShaderFacts& shader, const KernelInfo& kernel) const;

  const VulkanPhysicalDevice& device_;
  std::vector<const char*> extensions_;
  VkPhysicalDeviceFeatures2 basic_{};
  VkPhysicalDevice16BitStorageFeatures storage16_{};
  VkPhysicalDeviceVariablePointersFeatures pointers_{};
  VkPhysicalDevice8BitStorageFeatures storage8_{};
  VkPhysicalDeviceShaderFloat16Int8Features small_numbers_{};
  VkPhysicalDeviceShaderIntegerDotProductFeatures dot_products_{};
  VkPhysicalDeviceVulkanMemoryModelFeatures memory_model_{};
};

}  // namespace run_model
