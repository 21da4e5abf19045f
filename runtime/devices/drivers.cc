#include "runtime/devices/drivers.h"

#include <algorithm>
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

DeviceDriver* driver_for(DLDeviceType type) {
  const auto drivers = device_drivers();
  const auto found = std::find_if(drivers.begin(), drivers.end(),
                                  [&](DeviceDriver* each) { return each->type() == type; });
  return found == drivers.end() ? nullptr : *found;
}

DeviceDriver* driver_for(std::string_view name) {
  const auto drivers = device_drivers();
  const auto found = std::find_if(drivers.begin(), drivers.end(),
                                  [&](DeviceDriver* each) { return each->name() == name; });
  return found == drivers.end() ? nullptr : *found;
}

}  // namespace run_model
