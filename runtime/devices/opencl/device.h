// A device of an OpenCL driver.
#pragma once

#include <memory>

#include "runtime/devices/device.h"
#include "runtime/devices/opencl/api.h"

namespace run_model {

// What the driver says of the device. Throws Error(kIncompatible) where it does not answer.
DeviceInfo describe_opencl_device(const OpenClApi& api, cl_platform_id platform,
                                  cl_device_id device);

// `id` is how users call it.
std::unique_ptr<Device> open_opencl_device(const OpenClApi& api, cl_platform_id platform,
                                           cl_device_id device, DLDevice id);

}  // namespace run_model
