#include "runtime/devices/vulkan/memory.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <run_model/error.h>

namespace run_model {
namespace {

// Smaller ranges share blocks of this size; larger ones have their own.
constexpr std::uint64_t kSharedBlockBytes = std::uint64_t{8} << 20;
constexpr std::uint64_t kLargestShared = std::uint64_t{1} << 20;

constexpr VkMemoryPropertyFlags kLocal = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
constexpr VkMemoryPropertyFlags kVisible =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
constexpr VkMemoryPropertyFlags kCached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;

std::uint64_t next_multiple(std::uint64_t bytes, std::uint64_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

// The first type that has what is wanted, and nothing that is to be asked for explicitly
// (protected, lazily allocated, AMD's uncached).
std::optional<std::uint32_t> find_type(const VkPhysicalDeviceMemoryProperties& memory,
                                       std::uint32_t allowed, VkMemoryPropertyFlags wanted,
                                       VkMemoryPropertyFlags unwanted) {
  for (std::uint32_t i = 0; i < memory.memoryTypeCount; ++i) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
    const bool is_plain = (flags & ~(kLocal | kVisible | kCached)) == 0;
    if ((allowed >> i & 1) != 0 && is_plain && (flags & wanted) == wanted &&
        (flags & unwanted) == 0) {
      return i;
    }
  }
  return std::nullopt;
}

std::optional<std::uint32_t> choose_type(const VulkanPhysicalDevice& device, std::uint32_t allowed,
                                         VulkanBlock::Kind kind) {
  struct Choice {
    VkMemoryPropertyFlags wanted, unwanted;
  };
  // A GPU that shares the CPU's memory needs no copies to staging memory.
  const bool shares_memory =
      device.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU ||
      device.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  std::vector<Choice> choices;
  if (kind == VulkanBlock::Kind::kHost) {
    choices = {
        {kVisible | kCached, kLocal}, {kVisible | kCached, 0}, {kVisible, kLocal}, {kVisible, 0}};
  } else if (shares_memory) {
    choices = {{kLocal | kVisible | kCached, 0}, {kLocal | kVisible, 0}, {kLocal, 0}, {0, 0}};
  } else {
    choices = {{kLocal, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT}, {kLocal, 0}, {0, 0}};
  }
  for (const auto& [wanted, unwanted] : choices) {
    if (const auto type = find_type(device.memory, allowed, wanted, unwanted)) return type;
  }
  return std::nullopt;
}

}  // namespace

VulkanBlock::VulkanBlock(std::shared_ptr<VulkanContext> context, Kind kind, std::uint64_t bytes)
    : context_(std::move(context)), bytes_(bytes) {
  context_->require_alive();
  const VulkanDeviceFunctions& vk = context_->vk();
  const std::string what = "allocating " + std::to_string(bytes) + " bytes";
  VkBufferCreateInfo create{};
  create.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  create.size = bytes;
  create.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT;
  if (kind == Kind::kHost) create.usage |= VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT;
  context_->check(vk.CreateBuffer(context_->handle(), &create, nullptr, &buffer_), what);
  try {
    VkMemoryRequirements required{};
    vk.GetBufferMemoryRequirements(context_->handle(), buffer_, &required);
    const auto type = choose_type(context_->physical(), required.memoryTypeBits, kind);
    if (!type) {
      throw Error(ErrorKind::kIncompatible,
                  context_->name() + " has no memory of a kind that buffers can have");
    }
    VkMemoryAllocateInfo allocate{};
    allocate.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    allocate.allocationSize = required.size;
    allocate.memoryTypeIndex = *type;
    context_->check(vk.AllocateMemory(context_->handle(), &allocate, nullptr, &memory_), what);
    context_->check(vk.BindBufferMemory(context_->handle(), buffer_, memory_, 0), what);
    const VkMemoryPropertyFlags flags =
        context_->physical().memory.memoryTypes[*type].propertyFlags;
    cached_ = (flags & kCached) != 0;
    const bool is_hidden = kind == Kind::kDevice && context_->options().staging_only;
    if ((flags & kVisible) == kVisible && !is_hidden) {
      void* mapped = nullptr;
      context_->check(vk.MapMemory(context_->handle(), memory_, 0, VK_WHOLE_SIZE, 0, &mapped),
                      what);
      mapped_ = static_cast<std::byte*>(mapped);
    }
  } catch (...) {
    vk.DestroyBuffer(context_->handle(), buffer_, nullptr);
    vk.FreeMemory(context_->handle(), memory_, nullptr);
    throw;
  }
}

VulkanBlock::VulkanBlock(std::shared_ptr<VulkanContext> context, VkBuffer buffer)
    : context_(std::move(context)), buffer_(buffer), adopted_(true) {
  VkMemoryRequirements required{};
  context_->vk().GetBufferMemoryRequirements(context_->handle(), buffer_, &required);
  bytes_ = required.size;
}

VulkanBlock::~VulkanBlock() {
  if (adopted_ || context_->is_stuck()) return;
  context_->vk().DestroyBuffer(context_->handle(), buffer_, nullptr);
  context_->vk().FreeMemory(context_->handle(), memory_, nullptr);
}

VulkanMemoryPool::VulkanMemoryPool(std::shared_ptr<VulkanContext> context)
    : context_(std::move(context)),
      alignment_(std::max<std::uint64_t>(64, context_->limits().minStorageBufferOffsetAlignment)) {}

VulkanRange VulkanMemoryPool::allocate(std::uint64_t bytes) {
  const std::uint64_t most = context_->physical().info.largest_buffer_bytes;
  // Not by the sum, which may be too large for its type.
  if (bytes > most / alignment_ * alignment_) {
    throw Error(ErrorKind::kIncompatible, "a buffer of " + std::to_string(bytes) +
                                              " bytes was asked for, and " + context_->name() +
                                              " has none above " + std::to_string(most) + " bytes");
  }
  const std::uint64_t rounded = next_multiple(std::max<std::uint64_t>(bytes, 1), alignment_);
  const bool shares = rounded <= kLargestShared;
  if (shares) {
    for (SharedBlock& shared : blocks_) {
      const VulkanRange range = take(shared, rounded);
      if (range.block != nullptr) return range;
    }
  }
  if (blocks_.size() >= context_->limits().maxMemoryAllocationCount) {
    throw Error(ErrorKind::kModel, context_->name() + " allows no more than " +
                                       std::to_string(blocks_.size()) + " allocations of memory");
  }
  const std::uint64_t size = shares ? kSharedBlockBytes : rounded;
  SharedBlock added;
  added.block = std::make_unique<VulkanBlock>(context_, VulkanBlock::Kind::kDevice, size);
  added.gaps.emplace(0, size);
  blocks_.push_back(std::move(added));
  return take(blocks_.back(), rounded);
}

VulkanRange VulkanMemoryPool::take(SharedBlock& shared, std::uint64_t bytes) {
  const auto gap =
      std::ranges::find_if(shared.gaps, [bytes](const auto& one) { return one.second >= bytes; });
  if (gap == shared.gaps.end()) return {};
  const auto [offset, size] = *gap;
  shared.gaps.erase(gap);
  if (size > bytes) shared.gaps.emplace(offset + bytes, size - bytes);
  return {shared.block.get(), offset, bytes};
}

void VulkanMemoryPool::free(const VulkanRange& range) noexcept {
  const auto shared = std::ranges::find_if(
      blocks_, [&range](const SharedBlock& one) { return one.block.get() == range.block; });
  if (shared == blocks_.end()) return;
  std::uint64_t begin = range.offset;
  std::uint64_t end = range.offset + range.bytes;
  auto next = shared->gaps.lower_bound(begin);
  if (next != shared->gaps.end() && next->first == end) {
    end += next->second;
    next = shared->gaps.erase(next);
  }
  if (next != shared->gaps.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      shared->gaps.erase(before);
    }
  }
  if (begin == 0 && end == shared->block->bytes()) {
    blocks_.erase(shared);
  } else {
    shared->gaps.emplace(begin, end - begin);
  }
}

}  // namespace run_model
