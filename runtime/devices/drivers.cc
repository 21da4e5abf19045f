#include "runtime/devices/drivers.h"

#include <algorithm>
#include <array>

#include <run_model/error.h>
#include "runtime/devices/device_name.h"

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

void DeviceDriver::check_index(std::size_t index) {
  const auto named = [&](std::size_t i) { return device_name({type(), static_cast<int>(i)}); };
  if (const Absence& absent = absence(); !absent.reason.empty()) {
    throw Error(ErrorKind::kIncompatible,
                "device " + named(index) + " cannot be used: " + absent.reason, absent.hint);
  }
  const std::size_t there = count();
  if (index < there) return;
  throw Error(ErrorKind::kIncompatible,
              "there is no device " + named(index) + ", " +
                  (there == 1 ? "only " + named(0) : "the last one is " + named(there - 1)),
              "--list-devices shows them");
}

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
