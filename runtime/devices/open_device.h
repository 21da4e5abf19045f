// A device in use, shared by all executors and libraries that use it.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <dlpack/dlpack.h>

#include "runtime/devices/device.h"
#include "runtime/threads/block_pool.h"

namespace run_model {

// Scratch memory on a device. As the device's queue is in order, what is freed may be lent again at
// once. Compiled code asks for the same sizes at every run, so blocks are kept.
class DeviceWorkspace {
 public:
  explicit DeviceWorkspace(Device& device) : device_(device) {}
  ~DeviceWorkspace();
  DeviceWorkspace(const DeviceWorkspace&) = delete;
  DeviceWorkspace& operator=(const DeviceWorkspace&) = delete;

  // Throws as Device::allocate does.
  void* allocate(std::size_t bytes);
  // False when `memory` was not allocated here, or was already freed.
  bool free(void* memory) noexcept { return pool_.take_back(memory); }

  std::size_t held_bytes() const { return pool_.held_bytes(); }

  // Blocks stay where they are from now on, since a recording refers to them.
  void keep_blocks() { keep_ = true; }

 private:
  Device& device_;
  BlockPool pool_;
  bool keep_ = false;
};

class OpenDevice {
 public:
  explicit OpenDevice(std::unique_ptr<Device> device);

  DLDevice id() const { return device_->id(); }
  Device& device() { return *device_; }
  // "opencl:0 (NVIDIA H100 80GB HBM3)".
  const std::string& name() const { return name_; }
  DeviceWorkspace& workspace() { return workspace_; }

  // Whoever calls anything of the device holds it.
  std::recursive_mutex& mutex() { return mutex_; }

 private:
  std::recursive_mutex mutex_;
  std::unique_ptr<Device> device_;
  std::string name_;
  DeviceWorkspace workspace_;
};

// Opens the device, or gives it where it is open already; it is closed when nobody holds it any
// more. Throws Error(kIncompatible) where driver or device are not there, saying what to install.
std::shared_ptr<OpenDevice> open_device(DLDevice id);

// Those that a graph places entries on, one of each kind.
using GraphDevices = std::vector<std::shared_ptr<OpenDevice>>;

}  // namespace run_model
