// The drivers of GPUs that this program knows, each opened when it is first asked for.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <dlpack/dlpack.h>

#include "runtime/devices/device.h"

namespace run_model {

class DeviceDriver {
 public:
  virtual ~DeviceDriver() = default;

  virtual DLDeviceType type() const = 0;
  // As users write it before the index: "cuda", "opencl", "vulkan".
  virtual std::string name() const = 0;

  // Empty where the driver is there, else why it cannot be used and what to install, as a sentence
  // for each: "there is no libOpenCL.so.1", "install ocl-icd-libopencl1 and the GPU's ICD …".
  struct Absence {
    std::string reason;
    std::string hint;
  };
  // Opens the driver's library at the first call. Never throws.
  virtual const Absence& absence() = 0;

  // Of the devices that are there, real ones before those in software; 0 where the driver is
  // absent.
  virtual std::size_t count() = 0;
  // Throw Error(kIncompatible) for an index that there is none of, or a device that cannot be used.
  virtual DeviceInfo info(std::size_t index) = 0;
  virtual std::unique_ptr<Device> open(std::size_t index) = 0;

 protected:
  // Throws where the driver is absent, or has no device of this index.
  void check_index(std::size_t index);
};

// One in each of runtime/devices/{cuda,opencl,vulkan}/; they live as long as the program.
DeviceDriver& cuda_driver();
DeviceDriver& opencl_driver();
DeviceDriver& vulkan_driver();

// All that this program was built with.
std::span<DeviceDriver* const> device_drivers();
// The one for devices of a kind, null where this program was built without it; the same by the name
// that users write.
DeviceDriver* driver_for(DLDeviceType type);
DeviceDriver* driver_for(std::string_view name);

}  // namespace run_model
