// A Device of NVIDIA's driver.
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/devices/cuda/api.h"
#include "runtime/devices/device.h"
#include "runtime/devices/device_failures.h"

namespace run_model::cuda {

// `patience_nanoseconds` is how long the stream may take for what it was given.
std::unique_ptr<Device> open_device(
    const Api& api, DeviceNumber device, int index, const DeviceInfo& info,
    std::uint64_t patience_nanoseconds = patience_nanoseconds_with(/*software=*/false));

}  // namespace run_model::cuda
