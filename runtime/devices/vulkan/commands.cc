#include "runtime/devices/vulkan/commands.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace run_model {
namespace {

constexpr std::uint32_t kSetsOfPool = 256;
// More than most kernels take; a pool whose buffers are used up before its sets is full as well.
constexpr std::uint32_t kBuffersOfPool = 8 * kSetsOfPool;
constexpr std::uint64_t kHostBlockBytes = std::uint64_t{1} << 20;

constexpr VkPipelineStageFlags kStages =
    VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
constexpr VkAccessFlags kWrites = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT;
constexpr VkAccessFlags kAll = kWrites | VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_TRANSFER_READ_BIT;

bool overlap(const VulkanRange& a, const VulkanRange& b) {
  return a.buffer() == b.buffer() && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}

}  // namespace

VulkanCommands::VulkanCommands(std::shared_ptr<VulkanContext> context)
    : context_(std::move(context)) {
  VkCommandPoolCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO;
  create.queueFamilyIndex = context_->physical().queue_family;
  context_->check(context_->vk().CreateCommandPool(context_->handle(), &create, nullptr, &pool_),
                  "making a pool of commands");
  VkCommandBufferAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO;
  allocate.commandPool = pool_;
  allocate.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY;
  allocate.commandBufferCount = 1;
  const VkResult result =
      context_->vk().AllocateCommandBuffers(context_->handle(), &allocate, &handle_);
  if (result != VK_SUCCESS) {
    context_->vk().DestroyCommandPool(context_->handle(), pool_, nullptr);
    context_->fail(result, "filling a buffer of commands");
  }
}

VulkanCommands::~VulkanCommands() {
  if (context_->is_stuck()) return;
  for (VkDescriptorPool pool : set_pools_) {
    context_->vk().DestroyDescriptorPool(context_->handle(), pool, nullptr);
  }
  context_->vk().DestroyCommandPool(context_->handle(), pool_, nullptr);
}

void VulkanCommands::begin(bool repeats) {
  const VulkanDeviceFunctions& vk = context_->vk();
  context_->check(vk.ResetCommandPool(context_->handle(), pool_, 0),
                  "filling a buffer of commands");
  for (VkDescriptorPool pool : set_pools_) {
    context_->check(vk.ResetDescriptorPool(context_->handle(), pool, 0),
                    "making a pool of buffers");
  }
  VkCommandBufferBeginInfo begin{};
  begin.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO;
  begin.flags = repeats ? VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT
                        : VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT;
  context_->check(vk.BeginCommandBuffer(handle_, &begin), "filling a buffer of commands");
  count_ = 0;
  accesses_.clear();
  set_pool_ = 0;
  host_block_ = 0;
  host_used_ = 0;
  host_bytes_ = 0;
}

void VulkanCommands::end() {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = kWrites;
  memory.dstAccessMask = kAll | VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT;
  context_->vk().CmdPipelineBarrier(handle_, kStages, kStages | VK_PIPELINE_STAGE_HOST_BIT, 0, 1,
                                    &memory, 0, nullptr, 0, nullptr);
  context_->check(context_->vk().EndCommandBuffer(handle_), "filling a buffer of commands");
}

void VulkanCommands::barrier() {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = kWrites;
  memory.dstAccessMask = kAll;
  context_->vk().CmdPipelineBarrier(handle_, kStages, kStages, 0, 1, &memory, 0, nullptr, 0,
                                    nullptr);
  accesses_.clear();
}

void VulkanCommands::order(std::span<const VulkanAccess> accesses) {
  const bool depends = std::ranges::any_of(accesses, [this](const VulkanAccess& now) {
    return std::ranges::any_of(accesses_, [&now](const VulkanAccess& before) {
      return (now.writes || before.writes) && overlap(now.range, before.range);
    });
  });
  if (depends) barrier();
  accesses_.insert(accesses_.end(), accesses.begin(), accesses.end());
  ++count_;
}

VkDescriptorSet VulkanCommands::descriptor_set(VkDescriptorSetLayout layout) {
  const VulkanDeviceFunctions& vk = context_->vk();
  VkDescriptorSetAllocateInfo allocate{};
  allocate.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO;
  allocate.descriptorSetCount = 1;
  allocate.pSetLayouts = &layout;
  VkDescriptorSet set = VK_NULL_HANDLE;
  for (bool is_new = false;; ++set_pool_) {
    if (set_pool_ == set_pools_.size()) {
      const VkDescriptorPoolSize sizes[] = {{VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, kBuffersOfPool},
                                            {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, kSetsOfPool}};
      VkDescriptorPoolCreateInfo create{};
      create.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO;
      create.maxSets = kSetsOfPool;
      create.poolSizeCount = 2;
      create.pPoolSizes = sizes;
      VkDescriptorPool pool = VK_NULL_HANDLE;
      context_->check(vk.CreateDescriptorPool(context_->handle(), &create, nullptr, &pool),
                      "making a pool of buffers");
      set_pools_.push_back(pool);
      is_new = true;
    }
    allocate.descriptorPool = set_pools_[set_pool_];
    const VkResult result = vk.AllocateDescriptorSets(context_->handle(), &allocate, &set);
    if (result == VK_SUCCESS) return set;
    const bool is_full =
        result == VK_ERROR_OUT_OF_POOL_MEMORY || result == VK_ERROR_FRAGMENTED_POOL;
    if (!is_full || is_new) context_->fail(result, "making a set of buffers");
  }
}

void VulkanCommands::launch(const VulkanPipeline& pipeline, std::span<const VulkanAccess> buffers,
                            std::span<const std::uint64_t> scalars,
                            const std::uint32_t (&groups)[3]) {
  const VulkanDeviceFunctions& vk = context_->vk();
  infos_.clear();
  for (const VulkanAccess& buffer : buffers) {
    infos_.push_back({buffer.range.buffer(), buffer.range.offset, buffer.range.bytes});
  }
  if (pipeline.scalars_in_buffer && !scalars.empty()) {
    const VulkanRange range =
        host_memory(scalars.size_bytes(), context_->limits().minUniformBufferOffsetAlignment);
    std::memcpy(range.mapped(), scalars.data(), scalars.size_bytes());
    infos_.push_back({range.buffer(), range.offset, range.bytes});
  }
  vk.CmdBindPipeline(handle_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline);
  if (!infos_.empty()) {
    VkDescriptorSet set = descriptor_set(pipeline.set_layout);
    writes_.clear();
    for (std::uint32_t i = 0; i < infos_.size(); ++i) {
      VkWriteDescriptorSet write{};
      write.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
      write.dstSet = set;
      write.dstBinding = i;
      write.descriptorCount = 1;
      write.descriptorType = i < buffers.size() ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER
                                                : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
      write.pBufferInfo = &infos_[i];
      writes_.push_back(write);
    }
    vk.UpdateDescriptorSets(context_->handle(), static_cast<std::uint32_t>(writes_.size()),
                            writes_.data(), 0, nullptr);
    vk.CmdBindDescriptorSets(handle_, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.layout, 0, 1, &set,
                             0, nullptr);
  }
  if (!pipeline.scalars_in_buffer && !scalars.empty()) {
    vk.CmdPushConstants(handle_, pipeline.layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        static_cast<std::uint32_t>(scalars.size_bytes()), scalars.data());
  }
  order(buffers);
  vk.CmdDispatch(handle_, groups[0], groups[1], groups[2]);
}

void VulkanCommands::copy(const VulkanRange& from, const VulkanRange& to) {
  const VulkanAccess accesses[] = {{from, false}, {to, true}};
  order(accesses);
  const VkBufferCopy region{from.offset, to.offset, to.bytes};
  context_->vk().CmdCopyBuffer(handle_, from.buffer(), to.buffer(), 1, &region);
}

void VulkanCommands::fill_with_zeros(const VulkanRange& range) {
  const VulkanAccess accesses[] = {{range, true}};
  order(accesses);
  context_->vk().CmdFillBuffer(handle_, range.buffer(), range.offset, range.bytes, 0);
}

VulkanRange VulkanCommands::host_memory(std::uint64_t bytes, std::uint64_t alignment) {
  host_bytes_ += bytes;
  while (true) {
    if (host_block_ == host_blocks_.size()) {
      host_blocks_.push_back(std::make_unique<VulkanBlock>(context_, VulkanBlock::Kind::kHost,
                                                           std::max(bytes, kHostBlockBytes)));
    }
    VulkanBlock* const block = host_blocks_[host_block_].get();
    const std::uint64_t offset = (host_used_ + alignment - 1) / alignment * alignment;
    if (offset <= block->bytes() && bytes <= block->bytes() - offset) {
      host_used_ = offset + bytes;
      return {block, offset, bytes};
    }
    ++host_block_;
    host_used_ = 0;
  }
}

}  // namespace run_model
