// The order in which a Vulkan device works: batches of commands, each handed over as a whole, whose
// end is known by a fence.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/devices/vulkan/commands.h"
#include "runtime/devices/vulkan/context.h"

namespace run_model {

class VulkanQueue {
 public:
  // Batches are numbered from 1 on, in their order.
  using Batch = std::uint64_t;

  explicit VulkanQueue(std::shared_ptr<VulkanContext> context);
  ~VulkanQueue();
  VulkanQueue(const VulkanQueue&) = delete;
  VulkanQueue& operator=(const VulkanQueue&) = delete;

  // The commands of the batch that is being filled.
  VulkanCommands& open();
  // The number that what is asked for now will have.
  Batch current() const { return next_; }
  // Hands the open batch over where it is large enough for the device to begin with.
  void submit_if_large();
  void submit();
  // The open batch, then these commands, which stay as they are. Returns the batch they are in.
  Batch submit_with(const VulkanCommands& recorded);

  bool is_done(Batch batch);
  // Until this batch is done, which may be the open one.
  void wait_for(Batch batch);
  void wait() { wait_for(next_); }

 private:
  struct Slot {
    std::unique_ptr<VulkanCommands> commands;
    VkFence fence = VK_NULL_HANDLE;
    Batch batch = 0;  // 0 where it is free
  };

  Slot& open_slot();
  Slot* slot_of(Batch batch);
  void submit_slot(Slot& slot, const VulkanCommands* recorded);
  void wait_for_slot(Slot& slot);

  std::shared_ptr<VulkanContext> context_;
  std::vector<Slot> slots_;
  Slot* open_ = nullptr;
  Batch next_ = 1;
  Batch done_ = 0;  // all up to this one are
};

}  // namespace run_model
