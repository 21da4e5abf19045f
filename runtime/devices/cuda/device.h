// A Device of NVIDIA's driver.
#pragma once

#include <memory>

#include "runtime/devices/cuda/api.h"
#include "runtime/devices/device.h"

namespace run_model::cuda {

std::unique_ptr<Device> open_device(const Api& api, DeviceNumber device, int index,
                                    const DeviceInfo& info);

}  // namespace run_model::cuda
