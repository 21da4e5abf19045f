// A piece of a device's memory that tensors share.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/devices/device.h"
#include "runtime/devices/open_device.h"

namespace run_model {

class DeviceMemoryView {
 public:
  // Zeroed memory of the device.
  DeviceMemoryView(std::shared_ptr<OpenDevice> device, std::size_t bytes);
  // Memory of somebody else, who is told by `release` when the device is done with it; not where
  // this throws, as Device::adopt does.
  DeviceMemoryView(std::shared_ptr<OpenDevice> device, const NativeMemory& memory,
                   std::size_t bytes, std::function<void()> release);
  ~DeviceMemoryView();
  DeviceMemoryView(const DeviceMemoryView&) = delete;
  DeviceMemoryView& operator=(const DeviceMemoryView&) = delete;

  OpenDevice& device() const { return *device_; }
  void* handle() const { return handle_; }
  std::size_t bytes() const { return bytes_; }
  NativeMemory native() const;

  void upload(const void* from);
  void download(void* to) const;

  bool overlaps(const DeviceMemoryView& other) const;

 private:
  std::shared_ptr<OpenDevice> device_;
  std::size_t bytes_;
  void* handle_;
  std::function<void()> release_;
};

}  // namespace run_model
