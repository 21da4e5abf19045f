// Memory on a device that is freed together.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "runtime/devices/open_device.h"

namespace run_model {

class DeviceMemory {
 public:
  explicit DeviceMemory(std::shared_ptr<OpenDevice> device) : device_(std::move(device)) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  OpenDevice& device() const { return *device_; }
  std::size_t bytes() const { return bytes_; }

  // Zeroed. Throws as Device::allocate does.
  void* allocate(std::size_t bytes);
  // Of something that allocate() gave; Device::part_alignment() holds.
  void* part(void* memory, std::size_t offset, std::size_t bytes);

 private:
  std::shared_ptr<OpenDevice> device_;
  std::size_t bytes_ = 0;
  std::vector<void*> blocks_;
  std::vector<void*> parts_;
};

}  // namespace run_model
