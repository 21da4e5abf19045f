#include "runtime/devices/drivers.h"

#include <array>

namespace run_model {

std::span<DeviceDriver* const> device_drivers() {
  static const auto drivers = std::to_array<DeviceDriver*>({
#ifdef RUN_MODEL_WITH_CUDA
      &cuda_driver(),
#endif
#ifdef RUN_MODEL_WITH_OPENCL
      &opencl_driver(),
#endif
#ifdef RUN_MODEL_WITH_VULKAN
      &vulkan_driver(),
#endif
      nullptr,  // so that there is an array without any driver
  });
  return {drivers.data(), drivers.size() - 1};
}

}  // namespace run_model
