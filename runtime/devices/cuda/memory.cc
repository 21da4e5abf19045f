#include "runtime/devices/cuda/memory.h"

#include <algorithm>
#include <string>

#include <run_model/error.h>
#include <run_model/tensor.h>
#include "runtime/devices/given_memory.h"

namespace run_model::cuda {

void* Memory::allocate(std::size_t bytes) {
  const Api& api = gpu_->api();
  // Nothing can be allocated but has an address.
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  Pointer address = 0;
  const Result result = api.allocate(&address, size);
  if (result != kSuccess) {
    gpu_->fail(result, "allocating " + std::to_string(size) + " bytes, of " +
                           std::to_string(total_bytes_) + " of which " +
                           std::to_string(allocated_) + " are in use here");
  }
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

void* Memory::adopt(const NativeMemory& memory, std::size_t bytes, int device) {
  const GivenMemory given(gpu_->label(), "an address of CUDA's memory on a device", memory);
  const Api& api = gpu_->api();
  const Pointer start = address(memory.base, memory.offset);
  unsigned type = 0;
  Result result = api.pointer_attribute(&type, PointerAttribute::kMemoryType, start);
  if (result == kInvalidValue || (result == kSuccess && type != kDeviceMemory)) {
    given.refuse_unknown();
  }
  gpu_->check(result, "looking at memory of the application");
  int ordinal = 0;
  result = api.pointer_attribute(&ordinal, PointerAttribute::kDeviceOrdinal, start);
  gpu_->check(result, "looking at memory of the application");
  if (ordinal != device) given.refuse("is on cuda:" + std::to_string(ordinal));
  given.require_aligned(start, kTensorAlignment);
  Pointer base = 0;
  std::size_t size = 0;
  gpu_->check(api.address_range(&base, &size, start), "looking at memory of the application");
  // What is there from the address on that was given, which may lie within what was allocated.
  given.require_room(memory.offset + (size - static_cast<std::size_t>(start - base)), bytes);
  void* handle = static_cast<char*>(memory.base) + memory.offset;
  ++parts_[handle];
  return handle;
}

void Memory::free(void* memory) {
  gpu_->wait();
  // Parts are freed before what they are of.
  const auto part = parts_.find(memory);
  if (part != parts_.end()) {
    if (--part->second == 0) parts_.erase(part);
    return;
  }
  const auto found = allocations_.find(memory);
  if (found == allocations_.end()) return;
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
