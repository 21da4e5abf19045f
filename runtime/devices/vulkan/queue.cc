#include "runtime/devices/vulkan/queue.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace run_model {
namespace {

// The device works on one batch while the next is filled; more only let it fall behind.
constexpr std::size_t kSlots = 4;
// A batch of so many launches is worth a call of the driver.
constexpr std::size_t kLargeBatch = 64;
constexpr std::uint64_t kLargeHostBytes = std::uint64_t{16} << 20;

}  // namespace

VulkanQueue::VulkanQueue(std::shared_ptr<VulkanContext> context) : context_(std::move(context)) {
  slots_.reserve(kSlots);  // pointers to slots stay
}

VulkanQueue::~VulkanQueue() {
  if (context_->is_stuck()) return;
  // What was handed over uses what is freed next. That it may have failed was said before.
  context_->vk().DeviceWaitIdle(context_->handle());
  for (const Slot& slot : slots_) {
    context_->vk().DestroyFence(context_->handle(), slot.fence, nullptr);
  }
}

VulkanQueue::Slot& VulkanQueue::open_slot() {
  if (open_ != nullptr) return *open_;
  Slot* slot = nullptr;
  if (slots_.size() < kSlots) {
    Slot added;
    added.commands = std::make_unique<VulkanCommands>(context_);
    VkFenceCreateInfo create{};
    create.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO;
    context_->check(context_->vk().CreateFence(context_->handle(), &create, nullptr, &added.fence),
                    "making a fence");
    slots_.push_back(std::move(added));
    slot = &slots_.back();
  } else {
    slot = &*std::ranges::min_element(slots_, {}, &Slot::batch);
    if (slot->batch != 0) wait_for_slot(*slot);
  }
  slot->commands->begin(false);
  slot->batch = next_;
  open_ = slot;
  return *slot;
}

VulkanCommands& VulkanQueue::open() {
  context_->require_alive();
  return *open_slot().commands;
}

void VulkanQueue::submit_if_large() {
  if (open_ != nullptr && (open_->commands->count() >= kLargeBatch ||
                           open_->commands->host_bytes() >= kLargeHostBytes)) {
    submit();
  }
}

void VulkanQueue::submit() {
  if (open_ != nullptr) submit_slot(*open_, nullptr);
}

VulkanQueue::Batch VulkanQueue::submit_with(const VulkanCommands& recorded) {
  Slot& slot = open_slot();
  const Batch batch = slot.batch;
  submit_slot(slot, &recorded);
  return batch;
}

void VulkanQueue::submit_slot(Slot& slot, const VulkanCommands* recorded) {
  context_->require_alive();
  open_ = nullptr;
  ++next_;
  // Free until it was handed over: nobody may wait for a fence that no batch will signal.
  const Batch batch = std::exchange(slot.batch, 0);
  slot.commands->end();
  const VkCommandBuffer buffers[] = {slot.commands->handle(),
                                     recorded == nullptr ? VK_NULL_HANDLE : recorded->handle()};
  VkSubmitInfo submit{};
  submit.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO;
  submit.commandBufferCount = recorded == nullptr ? 1 : 2;
  submit.pCommandBuffers = buffers;
  context_->check(context_->vk().QueueSubmit(context_->queue(), 1, &submit, slot.fence),
                  "launching kernels");
  slot.batch = batch;
}

void VulkanQueue::wait_for_slot(Slot& slot) {
  context_->require_alive();
  const VulkanDeviceFunctions& vk = context_->vk();
  context_->check(vk.WaitForFences(context_->handle(), 1, &slot.fence, VK_TRUE,
                                   context_->options().patience_nanoseconds),
                  "running kernels");
  context_->check(vk.ResetFences(context_->handle(), 1, &slot.fence), "running kernels");
  // Fences come in the order of the queue.
  done_ = std::max(done_, slot.batch);
  slot.batch = 0;
}

VulkanQueue::Slot* VulkanQueue::slot_of(Batch batch) {
  for (Slot& slot : slots_) {
    if (slot.batch == batch) return &slot;
  }
  return nullptr;
}

bool VulkanQueue::is_done(Batch batch) {
  if (batch <= done_) return true;
  Slot* const slot = slot_of(batch);
  if (slot == nullptr || slot == open_) return slot == nullptr;
  const VkResult result = context_->vk().GetFenceStatus(context_->handle(), slot->fence);
  if (result == VK_NOT_READY) return false;
  context_->check(result, "running kernels");
  wait_for_slot(*slot);
  return true;
}

void VulkanQueue::wait_for(Batch batch) {
  if (open_ != nullptr && open_->batch <= batch) submit();
  for (Slot& slot : slots_) {
    if (slot.batch != 0 && slot.batch <= batch && &slot != open_) wait_for_slot(slot);
  }
}

}  // namespace run_model
