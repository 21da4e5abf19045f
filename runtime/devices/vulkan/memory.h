// Memory of a Vulkan device, in blocks that are each one buffer: drivers allow few allocations
// (maxMemoryAllocationCount is 4096 on many), and networks have thousands of small tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/devices/vulkan/context.h"

namespace run_model {

// A buffer with its memory.
class VulkanBlock {
 public:
  enum class Kind {
    kDevice,  // fastest for the device
    kHost,    // fastest for the CPU to read and write
  };
  VulkanBlock(std::shared_ptr<VulkanContext> context, Kind kind, std::uint64_t bytes);
  // A buffer of the application, which neither is mapped nor freed here.
  VulkanBlock(std::shared_ptr<VulkanContext> context, VkBuffer buffer);
  ~VulkanBlock();
  VulkanBlock(const VulkanBlock&) = delete;
  VulkanBlock& operator=(const VulkanBlock&) = delete;

  VkBuffer buffer() const { return buffer_; }
  std::uint64_t bytes() const { return bytes_; }
  // Where the CPU sees it, or null. It stays there as long as the block.
  std::byte* mapped() const { return mapped_; }
  // Whether the CPU reads it at the speed of its own memory.
  bool cached() const { return cached_; }

 private:
  std::shared_ptr<VulkanContext> context_;
  std::uint64_t bytes_ = 0;
  VkBuffer buffer_ = VK_NULL_HANDLE;
  VkDeviceMemory memory_ = VK_NULL_HANDLE;
  std::byte* mapped_ = nullptr;
  bool cached_ = false;
  bool adopted_ = false;
};

// Bytes of a block.
struct VulkanRange {
  VulkanBlock* block = nullptr;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  VkBuffer buffer() const { return block->buffer(); }
  std::byte* mapped() const {
    return block->mapped() == nullptr ? nullptr : block->mapped() + offset;
  }
};

class VulkanMemoryPool {
 public:
  explicit VulkanMemoryPool(std::shared_ptr<VulkanContext> context);

  // Of ranges: what a storage buffer's offset must be a multiple of, and at least 64.
  std::uint64_t alignment() const { return alignment_; }

  VulkanRange allocate(std::uint64_t bytes);
  void free(const VulkanRange& range) noexcept;

 private:
  struct SharedBlock {
    std::unique_ptr<VulkanBlock> block;
    std::map<std::uint64_t, std::uint64_t> gaps;  // offset → bytes; no two of them touch
  };

  static VulkanRange take(SharedBlock& shared, std::uint64_t bytes);

  std::shared_ptr<VulkanContext> context_;
  std::uint64_t alignment_;
  std::vector<SharedBlock> blocks_;
};

}  // namespace run_model
