// A device of an OpenCL driver.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/devices/device.h"
#include "runtime/devices/opencl/api.h"

namespace run_model {

// `id` is how users call it; `patience_nanoseconds` how long the queue may take for what it was
// given, 0 for what suits the device.
std::unique_ptr<Device> open_opencl_device(const OpenClApi& api, cl_platform_id platform,
                                           cl_device_id device, DLDevice id, const DeviceInfo& info,
                                           std::uint64_t patience_nanoseconds = 0);

}  // namespace run_model
