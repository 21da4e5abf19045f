#include "runtime/devices/drivers.h"

#include <algorithm>
#include <array>

namespace run_model {
namespace {

template <typename Fits>
DeviceDriver* driver_where(Fits fits) {
  const auto drivers = device_drivers();
  const auto found = std::find_if(drivers.begin(), drivers.end(),
                                  [&](const DeviceDriver* each) { return fits(*each); });
  return found == drivers.end() ? nullptr : *found;
}

}  // namespace

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
  return driver_where([&](const DeviceDriver& each) { return each.type() == type; });
}

DeviceDriver* driver_for(std::string_view name) {
  return driver_where([&](const DeviceDriver& each) { return each.name() == name; });
}

}  // namespace run_model
