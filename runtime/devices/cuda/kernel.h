// Launches of one kernel.
#pragma once

#include <memory>

#include "runtime/devices/cuda/context.h"
#include "runtime/devices/device.h"
#include "runtime/devices/device_code.h"

namespace run_model::cuda {

// `kernel` must outlive what is returned; the context is current. Lets launches ask for as much
// dynamic shared memory as the GPU has beside the kernel's own.
std::unique_ptr<DeviceKernel> make_kernel(GpuContext& gpu, const DeviceInfo& device,
                                          const KernelInfo& kernel, Function function);

}  // namespace run_model::cuda
