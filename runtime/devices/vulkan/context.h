// An opened Vulkan device: its functions, its queue, what it can do, and how it fails.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "runtime/devices/code/code_cache.h"
#include "runtime/devices/device_failures.h"
#include "runtime/devices/vulkan/features.h"
#include "runtime/devices/vulkan/functions.h"
#include "runtime/devices/vulkan/physical_device.h"

namespace run_model {

struct VulkanOptions {
  // Copies go by way of staging memory, also where the CPU sees the device's.
  bool staging_only = false;
  // How long the queue may take for what it was given; 0 for what suits the device.
  std::uint64_t patience_nanoseconds = 0;
  // Where what is compiled is kept for the next start; null for nowhere.
  const CodeCache* disk = nullptr;
};

class VulkanContext {
 public:
  // `device`, which is vulkan:`index`, must outlive it. Throws Error(kIncompatible) where the
  // device cannot be opened.
  VulkanContext(const VulkanPhysicalDevice& device, int index, const VulkanOptions& options);
  ~VulkanContext();
  VulkanContext(const VulkanContext&) = delete;
  VulkanContext& operator=(const VulkanContext&) = delete;

  const VulkanDeviceFunctions& vk() const { return vk_; }
  VkDevice handle() const { return handle_; }
  VkQueue queue() const { return queue_; }
  const VulkanPhysicalDevice& physical() const { return physical_; }
  const VulkanFeatures& features() const { return features_; }
  const VkPhysicalDeviceLimits& limits() const { return physical_.properties.limits; }
  // "vulkan:0 (llvmpipe …)".
  const std::string& name() const { return failures_.device(); }

  // Throws what a result other than VK_SUCCESS means; `what` was being done: "allocating 3 bytes".
  // Lost devices stay lost.
  void check(VkResult result, const std::string& what) const {
    if (result != VK_SUCCESS) fail(result, what);
  }
  void require_alive() const { failures_.require_alive(); }
  [[noreturn]] void fail(VkResult result, const std::string& what) const;

  const VulkanOptions& options() const { return options_; }

  // Whether the queue did not answer in time: nothing that it may use can be freed any more.
  bool is_stuck() const { return stuck_; }

 private:
  const VulkanPhysicalDevice& physical_;
  mutable DeviceFailures failures_;
  VulkanFeatures features_;
  VulkanDeviceFunctions vk_;
  VkDevice handle_ = VK_NULL_HANDLE;
  VkQueue queue_ = VK_NULL_HANDLE;
  VulkanOptions options_;
  mutable std::atomic<bool> stuck_{false};
};

}  // namespace run_model
