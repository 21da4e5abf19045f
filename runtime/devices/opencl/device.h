// A device of an OpenCL driver.
#pragma once

#include <memory>

#include "runtime/devices/device.h"
#include "runtime/devices/opencl/api.h"

namespace run_model {

// `id` is how users call it.
std::unique_ptr<Device> open_opencl_device(const OpenClApi& api, cl_platform_id platform,
                                           cl_device_id device, DLDevice id,
                                           const DeviceInfo& info);

}  // namespace run_model
