// Work noted once as a CUDA graph.
#pragma once

#include <functional>
#include <memory>

#include "runtime/devices/cuda/context.h"
#include "runtime/devices/device.h"

namespace run_model::cuda {

// See Device::record: null where the driver is too old. The context is current.
std::unique_ptr<DeviceRecording> record(const std::shared_ptr<GpuContext>& gpu,
                                        const std::function<void()>& work);

}  // namespace run_model::cuda
