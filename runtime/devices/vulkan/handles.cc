#include "runtime/devices/vulkan/handles.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <run_model/tensor.h>
#include "runtime/devices/given_memory.h"

namespace run_model {

namespace {

// Shaders read and write whole words, and ranges are multiples of them.
std::uint64_t bytes_of_words(std::size_t bytes) {
  return 4 * std::max<std::uint64_t>(1, (std::uint64_t{bytes} + 3) / 4);
}

// Handles of what is no dispatchable object are pointers on 64-bit machines, and numbers elsewhere.
template <typename Handle>
Handle handle_of(void* pointer) {
  if constexpr (std::is_pointer_v<Handle>) {
    return static_cast<Handle>(pointer);
  } else {
    return static_cast<Handle>(reinterpret_cast<std::uintptr_t>(pointer));
  }
}

}  // namespace

VulkanHandles::VulkanHandles(std::shared_ptr<VulkanContext> context)
    : context_(std::move(context)), pool_(context_) {}

VulkanMemory* VulkanHandles::keep(std::unique_ptr<VulkanMemory> memory) {
  VulkanMemory* const handle = memory.get();
  live_.emplace(handle, std::move(memory));
  return handle;
}

VulkanMemory* VulkanHandles::allocate(std::size_t bytes) {
  auto memory = std::make_unique<VulkanMemory>();
  memory->whole = memory.get();
  memory->range = pool_.allocate(bytes);
  allocated_bytes_ += static_cast<std::size_t>(memory->range.bytes);
  return keep(std::move(memory));
}

VulkanMemory* VulkanHandles::part(VulkanMemory* memory, std::size_t offset, std::size_t bytes) {
  auto made = std::make_unique<VulkanMemory>();
  made->whole = memory->whole;
  made->range = {memory->range.block, memory->range.offset + offset, bytes_of_words(bytes)};
  return keep(std::move(made));
}

VulkanMemory* VulkanHandles::adopt(const NativeMemory& memory, std::size_t bytes) {
  const GivenMemory given(context_->name(), "a VkBuffer", memory);
  given.require_aligned(memory.offset, alignment());
  auto made = std::make_unique<VulkanMemory>();
  made->whole = made.get();
  made->adopted = std::make_unique<VulkanBlock>(context_, handle_of<VkBuffer>(memory.base));
  made->range = {made->adopted.get(), memory.offset, bytes_of_words(bytes)};
  given.require_room(made->adopted->bytes(), made->range.bytes);
  return keep(std::move(made));
}

void VulkanHandles::free(VulkanMemory* memory) noexcept {
  if (memory->whole == memory && memory->adopted == nullptr) {
    allocated_bytes_ -= static_cast<std::size_t>(memory->range.bytes);
    pool_.free(memory->range);
  }
  live_.erase(memory);
}

std::shared_ptr<void> VulkanHostMemory::allocate(const std::shared_ptr<VulkanContext>& context,
                                                 std::size_t bytes) {
  // Drivers map at 64 bytes at least.
  auto block = std::make_shared<VulkanBlock>(context, VulkanBlock::Kind::kHost,
                                             std::uint64_t{bytes} + kTensorAlignment);
  const auto address = reinterpret_cast<std::uintptr_t>(block->mapped());
  std::byte* const data =
      block->mapped() + (kTensorAlignment - address % kTensorAlignment) % kTensorAlignment;
  {
    const std::lock_guard lock(table_->mutex);
    table_->blocks.emplace(block->mapped(), block.get());
  }
  return {data, [block = std::move(block), table = table_](void*) {
            const std::lock_guard lock(table->mutex);
            table->blocks.erase(block->mapped());
          }};
}

VulkanRange VulkanHostMemory::find(const void* data, std::size_t bytes) const {
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::lock_guard lock(table_->mutex);
  const auto found = table_->blocks.lower_bound(begin);
  if (found == table_->blocks.end()) return {};
  const auto offset = static_cast<std::uint64_t>(begin - found->first);
  if (offset > found->second->bytes() || bytes > found->second->bytes() - offset) return {};
  return {found->second, offset, bytes};
}

}  // namespace run_model
