#include "runtime/devices/device_memory.h"

namespace run_model {

DeviceMemory::~DeviceMemory() {
  const std::lock_guard lock(device_->mutex());
  for (void* part : parts_) device_->device().free(part);
  for (void* block : blocks_) device_->device().free(block);
}

void* DeviceMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock(device_->mutex());
  blocks_.reserve(blocks_.size() + 1);
  blocks_.push_back(device_->device().allocate(bytes));
  bytes_ += bytes;
  return blocks_.back();
}

void* DeviceMemory::part(void* memory, std::size_t offset, std::size_t bytes) {
  const std::lock_guard lock(device_->mutex());
  parts_.reserve(parts_.size() + 1);
  parts_.push_back(device_->device().part(memory, offset, bytes));
  return parts_.back();
}

}  // namespace run_model
