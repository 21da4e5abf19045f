#include "runtime/devices/cuda/memory.h"

#include <algorithm>
#include <string>

#include <run_model/error.h>

namespace run_model::cuda {

void* Memory::allocate(std::size_t bytes) {
  const Api& api = gpu_->api();
  // Nothing can be allocated but has an address.
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  Pointer address = 0;
  const Result result = api.allocate(&address, size);
  if (result == kOutOfMemory) {
    throw Error(ErrorKind::kModel,
                gpu_->label() + " has no room for " + std::to_string(size) +
                    " bytes more: it has " + std::to_string(total_bytes_) + ", of which " +
                    std::to_string(allocated_) + " are in use here",
                "end other programs that use it, or take a smaller model");
  }
  gpu_->check(result, "allocating memory");
  auto* memory = reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  allocations_.emplace(memory, size);
  allocated_ += size;
  gpu_->check(api.fill(address, 0, size, gpu_->stream()), "filling memory with zeros");
  return memory;
}

void* Memory::part(void* memory, std::size_t offset, std::size_t /*bytes*/) {
  void* handle = static_cast<char*>(memory) + offset;
  ++parts_[handle];
  return handle;
}

void Memory::free(void* memory) noexcept {
  // Parts are freed before what they are of.
  const auto part = parts_.find(memory);
  if (part != parts_.end()) {
    if (--part->second == 0) parts_.erase(part);
    return;
  }
  const auto found = allocations_.find(memory);
  if (found == allocations_.end()) return;
  gpu_->api().stream_wait(gpu_->stream());
  gpu_->api().free(address(memory, 0));
  allocated_ -= found->second;
  allocations_.erase(found);
}

void Memory::free_all() noexcept {
  for (const auto& [memory, bytes] : allocations_) gpu_->api().free(address(memory, 0));
  allocations_.clear();
  parts_.clear();
  allocated_ = 0;
}

std::shared_ptr<void> Memory::allocate_host(std::size_t bytes) {
  void* memory = nullptr;
  gpu_->check(gpu_->api().allocate_host(&memory, std::max<std::size_t>(bytes, 1), kHostPortable),
              "allocating pinned memory");
  // It may outlive the device.
  return {memory, [gpu = gpu_](void* pinned) {
            try {
              const CurrentContext current(*gpu);
              gpu->api().free_host(pinned);
            } catch (const Error&) {
              // The device was lost, and the memory with it.
            }
          }};
}

}  // namespace run_model::cuda
