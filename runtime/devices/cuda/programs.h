// The code that a device was given, loaded by the driver, and its kernels.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/devices/cuda/context.h"
#include "runtime/devices/device.h"

namespace run_model::cuda {

class Programs {
 public:
  Programs(GpuContext& gpu, DeviceInfo info) : gpu_(gpu), info_(std::move(info)) {}
  Programs(const Programs&) = delete;
  Programs& operator=(const Programs&) = delete;
  // With the context current.
  void unload() noexcept;

  // See Device::kernel. The context is current.
  std::unique_ptr<DeviceKernel> kernel(const std::shared_ptr<const DeviceCode>& code,
                                       const std::string& name);

 private:
  ModuleHandle load(const std::shared_ptr<const DeviceCode>& code);
  ModuleHandle load_image(const DeviceCode& code);

  GpuContext& gpu_;
  DeviceInfo info_;
  // The key keeps the code, which kernels look into.
  std::map<std::shared_ptr<const DeviceCode>, ModuleHandle> modules_;
};

}  // namespace run_model::cuda
