// What compiled code takes for the data pointers of tensors on a Vulkan device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "runtime/devices/device.h"
#include "runtime/devices/vulkan/memory.h"
#include "runtime/devices/vulkan/queue.h"

namespace run_model {

// Compiled code asserts that data pointers are multiples of 64.
struct alignas(64) VulkanMemory {
  VulkanRange range;
  VulkanMemory* whole = nullptr;  // what it is a part of, or itself
  // Of the whole:
  VulkanQueue::Batch used_by = 0;          // the last batch that was given it
  bool recorded = false;                   // replays use it as well
  std::unique_ptr<VulkanBlock> adopted{};  // the application's, where it is that
};

class VulkanHandles {
 public:
  explicit VulkanHandles(std::shared_ptr<VulkanContext> context);

  VulkanMemory* allocate(std::size_t bytes);
  VulkanMemory* part(VulkanMemory* memory, std::size_t offset, std::size_t bytes);
  // See Device::adopt.
  VulkanMemory* adopt(const NativeMemory& memory, std::size_t bytes);
  // Nothing may use it any more.
  void free(VulkanMemory* memory) noexcept;

  std::uint64_t alignment() const { return pool_.alignment(); }
  std::size_t allocated_bytes() const { return allocated_bytes_; }

 private:
  VulkanMemory* keep(std::unique_ptr<VulkanMemory> memory);

  std::shared_ptr<VulkanContext> context_;
  VulkanMemoryPool pool_;
  std::unordered_map<const void*, std::unique_ptr<VulkanMemory>> live_;
  std::size_t allocated_bytes_ = 0;
};

// Memory of the CPU that the device reads and writes itself. It may outlive the device.
class VulkanHostMemory {
 public:
  std::shared_ptr<void> allocate(const std::shared_ptr<VulkanContext>& context, std::size_t bytes);

  // The range of these bytes; its block is null where they are ordinary memory.
  VulkanRange find(const void* data, std::size_t bytes) const;

 private:
  struct Table {
    std::mutex mutex;
    std::map<const std::byte*, VulkanBlock*, std::greater<>> blocks;  // by where they begin
  };
  std::shared_ptr<Table> table_ = std::make_shared<Table>();
};

}  // namespace run_model
