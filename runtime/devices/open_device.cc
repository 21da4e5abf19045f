#include "runtime/devices/open_device.h"

#include <algorithm>
#include <map>
#include <utility>

#include <run_model/error.h>
#include "runtime/devices/device_name.h"
#include "runtime/devices/drivers.h"

namespace run_model {
namespace {

struct OpenDevices {
  std::mutex mutex;
  std::map<std::pair<int, int>, std::weak_ptr<OpenDevice>> entries;

  // Never destroyed: libraries may outlive the program's static objects.
  static OpenDevices& instance() {
    static auto* devices = new OpenDevices;
    return *devices;
  }
};

std::unique_ptr<Device> open_new(DLDevice id) {
  DeviceDriver* driver = driver_for(id.device_type);
  if (driver == nullptr) {
    throw Error(ErrorKind::kIncompatible,
                "device " + device_name(id) +
                    " was asked for, but this program was built without its driver");
  }
  return driver->open(static_cast<std::size_t>(id.device_id));
}

}  // namespace

DeviceWorkspace::~DeviceWorkspace() {
  pool_.give_up_all([this](const BlockPool::Block& block) { device_.free(block.memory); });
}

void* DeviceWorkspace::allocate(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  pool_.reserve();
  if (void* known = pool_.lend(bytes)) return known;
  if (!keep_) {
    if (const auto largest = pool_.give_up_largest()) device_.free(largest->memory);
  }
  void* memory = device_.allocate(bytes);
  pool_.add_lent({memory, bytes});
  return memory;
}

OpenDevice::OpenDevice(std::unique_ptr<Device> device)
    : device_(std::move(device)),
      name_(device_name(device_->id()) + " (" + device_->info().name + ")"),
      workspace_(*device_) {}

std::shared_ptr<OpenDevice> open_device(DLDevice id) {
  OpenDevices& open = OpenDevices::instance();
  const std::lock_guard lock(open.mutex);
  std::weak_ptr<OpenDevice>& entry = open.entries[{static_cast<int>(id.device_type), id.device_id}];
  if (auto device = entry.lock()) return device;
  auto device = std::make_shared<OpenDevice>(open_new(id));
  entry = device;
  return device;
}

}  // namespace run_model
