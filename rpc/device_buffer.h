// Memory on a GPU that a client holds, and the GPUs that a session has.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <run_model/rpc/value.h>
#include "runtime/devices/open_device.h"

namespace run_model::rpc {

// All throw Error for what the device cannot do. The memory ends with this.
class DeviceBuffer {
 public:
  // Zeroed.
  DeviceBuffer(std::shared_ptr<OpenDevice> device, std::size_t bytes);
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  ~DeviceBuffer();

  DLDevice device() const { return device_->id(); }
  void* handle() const { return handle_; }
  std::size_t bytes() const { return bytes_; }

  // Within the memory, as find_tensor has checked.
  void upload(std::size_t offset, std::span<const std::byte> from);
  void download(std::size_t offset, std::span<std::byte> to) const;
  // To another place, which may be on another device, or overlap where it is not in this memory.
  void copy_to(std::size_t offset, DeviceBuffer& to, std::size_t to_offset,
               std::size_t bytes) const;

 private:
  std::shared_ptr<OpenDevice> device_;
  void* handle_;
  std::size_t bytes_;
};

// Whether clients can mean a GPU by it: cuda, opencl or vulkan.
bool is_gpu(const Device& device);

// As compiled code takes it. Throws Error(kMismatch) for other devices than the CPU and GPUs.
DLDevice dl_device(const Device& device);

// Opens the GPU, or gives it where it is open. Throws Error(kIncompatible) where there is none.
// Once it was asked for it stays open until the process, which has one session, ends.
std::shared_ptr<OpenDevice> session_device(const Device& device);

// Waits until the device has done what it was asked for; nothing to wait for on the CPU.
void wait_for(const Device& device);

// Copies between tensors of the same size, wherever they are.
void copy_between(const TensorArgument& from, const TensorArgument& to);

}  // namespace run_model::rpc
