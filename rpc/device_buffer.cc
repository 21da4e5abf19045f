#include "rpc/device_buffer.h"

#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <run_model/error.h>

namespace run_model::rpc {

DeviceBuffer::DeviceBuffer(std::shared_ptr<OpenDevice> device, std::size_t bytes)
    : device_(std::move(device)), bytes_(bytes) {
  const std::lock_guard lock(device_->mutex());
  handle_ = device_->device().allocate(bytes);
}

DeviceBuffer::~DeviceBuffer() {
  const std::lock_guard lock(device_->mutex());
  device_->device().free(handle_);
}

void DeviceBuffer::upload(std::size_t offset, std::span<const std::byte> from) {
  if (from.empty()) return;
  const std::lock_guard lock(device_->mutex());
  device_->device().upload(handle_, offset, from.data(), from.size());
}

void DeviceBuffer::download(std::size_t offset, std::span<std::byte> to) const {
  if (to.empty()) return;
  const std::lock_guard lock(device_->mutex());
  device_->device().download(handle_, offset, to.data(), to.size());
}

void DeviceBuffer::copy_to(std::size_t offset, DeviceBuffer& to, std::size_t to_offset,
                           std::size_t bytes) const {
  if (bytes == 0) return;
  if (&to != this && to.device_ == device_) {
    const std::lock_guard lock(device_->mutex());
    device_->device().copy(handle_, offset, to.handle_, to_offset, bytes);
    return;
  }
  // Devices copy what does not overlap, and within themselves only.
  std::vector<std::byte> host(bytes);
  download(offset, host);
  to.upload(to_offset, host);
}

bool is_gpu(const Device& device) {
  return device.type == kDLCUDA || device.type == kDLOpenCL || device.type == kDLVulkan;
}

DLDevice dl_device(const Device& device) {
  if (device.type == kDLCPU || is_gpu(device)) {
    return {static_cast<DLDeviceType>(device.type), device.number};
  }
  throw Error(ErrorKind::kMismatch, "device type " + std::to_string(device.type) +
                                        " is none of this server's: it has the CPU (1), and may "
                                        "have CUDA (2), OpenCL (4) and Vulkan (7)");
}

std::shared_ptr<OpenDevice> session_device(const Device& device) {
  static std::mutex mutex;
  static auto& open = *new std::map<std::pair<int, int>, std::shared_ptr<OpenDevice>>;
  const std::lock_guard lock(mutex);
  std::shared_ptr<OpenDevice>& entry = open[{device.type, device.number}];
  if (entry == nullptr) entry = open_device(dl_device(device));
  return entry;
}

void wait_for(const Device& device) {
  if (!is_gpu(device)) return;
  const auto open = session_device(device);
  const std::lock_guard lock(open->mutex());
  open->device().wait();
}

void copy_between(const TensorArgument& from, const TensorArgument& to) {
  const std::size_t bytes = from.tensor.nbytes();
  if (bytes != to.tensor.nbytes()) {
    throw Error(ErrorKind::kMismatch, "a tensor of " + std::to_string(bytes) +
                                          " bytes cannot be copied to one of " +
                                          std::to_string(to.tensor.nbytes()) + " bytes");
  }
  if (bytes == 0) return;
  if (from.device_memory != nullptr && to.device_memory != nullptr) {
    from.device_memory->copy_to(from.byte_offset, *to.device_memory, to.byte_offset, bytes);
  } else if (from.device_memory != nullptr) {
    from.device_memory->download(from.byte_offset,
                                 {static_cast<std::byte*>(to.tensor.data()), bytes});
  } else if (to.device_memory != nullptr) {
    to.device_memory->upload(to.byte_offset,
                             {static_cast<const std::byte*>(from.tensor.data()), bytes});
  } else {
    std::memmove(to.tensor.data(), from.tensor.data(), bytes);
  }
}

}  // namespace run_model::rpc
