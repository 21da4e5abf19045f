// A GPU's memory by handles, which are its addresses, and pinned memory of the CPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "runtime/devices/cuda/context.h"
#include "runtime/devices/device.h"

namespace run_model::cuda {

// The context is current at every call but that of allocate_host's deleter.
class Memory {
 public:
  Memory(std::shared_ptr<GpuContext> gpu, std::size_t total_bytes)
      : gpu_(std::move(gpu)), total_bytes_(total_bytes) {}

  // What CUDA aligns its own allocations to.
  static constexpr std::size_t kAlignment = 256;

  void* allocate(std::size_t bytes);
  void* part(void* memory, std::size_t offset, std::size_t bytes);
  // Memory of the application on the device of this number; see Device::adopt.
  void* adopt(const NativeMemory& memory, std::size_t bytes, int device);
  // Waits for what uses it.
  void free(void* memory);
  // Gives back what was not freed.
  void free_all() noexcept;
  std::size_t allocated_bytes() const { return allocated_; }

  std::shared_ptr<void> allocate_host(std::size_t bytes);

  static Pointer address(const void* memory, std::size_t offset) {
    return reinterpret_cast<std::uintptr_t>(memory) + offset;
  }

 private:
  std::shared_ptr<GpuContext> gpu_;
  std::size_t total_bytes_;
  std::size_t allocated_ = 0;
  std::map<void*, std::size_t> allocations_;
  // How many parts, and pieces of the application's memory, begin at an address: one at offset 0
  // has the address of the allocation.
  std::map<void*, std::size_t> parts_;
};

}  // namespace run_model::cuda
