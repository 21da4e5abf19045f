// A command buffer while it is filled: launches and copies in their order, with a barrier wherever
// one depends on an earlier one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/devices/vulkan/context.h"
#include "runtime/devices/vulkan/memory.h"

namespace run_model {

struct VulkanAccess {
  VulkanRange range;
  bool writes = false;
};

// A pipeline and what its launches have in common.
struct VulkanPipeline {
  VkDescriptorSetLayout set_layout = VK_NULL_HANDLE;
  VkPipelineLayout layout = VK_NULL_HANDLE;
  VkPipeline pipeline = VK_NULL_HANDLE;
  bool scalars_in_buffer = false;
};

class VulkanCommands {
 public:
  explicit VulkanCommands(std::shared_ptr<VulkanContext> context);
  ~VulkanCommands();
  VulkanCommands(const VulkanCommands&) = delete;
  VulkanCommands& operator=(const VulkanCommands&) = delete;

  // Begins anew; the device must be done with what was in it. What repeats may be handed to the
  // queue again before it is done.
  void begin(bool repeats);
  // What comes later in the queue, and the CPU, sees all of it.
  void end();

  VkCommandBuffer handle() const { return handle_; }
  // Launches and copies since begin().
  std::size_t count() const { return count_; }
  // Of the CPU's memory taken since begin().
  std::uint64_t host_bytes() const { return host_bytes_; }

  void launch(const VulkanPipeline& pipeline, std::span<const VulkanAccess> buffers,
              std::span<const std::uint64_t> scalars, const std::uint32_t (&groups)[3]);
  void copy(const VulkanRange& from, const VulkanRange& to);
  void fill_with_zeros(const VulkanRange& range);
  // All before is done before all after.
  void barrier();

  // Memory for the CPU and the device, valid until begin() is called again.
  VulkanRange host_memory(std::uint64_t bytes, std::uint64_t alignment = 4);

 private:
  void order(std::span<const VulkanAccess> accesses);
  VkDescriptorSet descriptor_set(VkDescriptorSetLayout layout);

  std::shared_ptr<VulkanContext> context_;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  VkCommandBuffer handle_ = VK_NULL_HANDLE;
  std::size_t count_ = 0;
  // Since the last barrier.
  std::vector<VulkanAccess> accesses_;

  std::vector<VkDescriptorPool> set_pools_;
  std::size_t set_pool_ = 0;  // the first that may have room

  std::vector<std::unique_ptr<VulkanBlock>> host_blocks_;
  std::size_t host_block_ = 0;   // the first that may have room
  std::uint64_t host_used_ = 0;  // of that block
  std::uint64_t host_bytes_ = 0;

  // Kept for their capacity.
  std::vector<VkDescriptorBufferInfo> infos_;
  std::vector<VkWriteDescriptorSet> writes_;
};

}  // namespace run_model
