#include "runtime/devices/open_device.h"

#include <algorithm>
#include <map>
#include <utility>

#include <run_model/error.h>
#include "runtime/devices/device_name.h"

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
  const std::string name = device_name(id);
  DeviceDriver* driver = driver_for(id.device_type);
  if (driver == nullptr) {
    throw Error(ErrorKind::kIncompatible,
                "device " + name + " was asked for, but this program was built without its driver");
  }
  if (const auto& absence = driver->absence(); !absence.reason.empty()) {
    throw Error(ErrorKind::kIncompatible, "device " + name + " cannot be used: " + absence.reason,
                absence.hint);
  }
  const std::size_t count = driver->count();
  if (id.device_id < 0 || static_cast<std::size_t>(id.device_id) >= count) {
    throw Error(ErrorKind::kIncompatible,
                "there is no device " + name + ", but " + std::to_string(count) + " of that kind",
                "--list-devices shows them");
  }
  return driver->open(static_cast<std::size_t>(id.device_id));
}

}  // namespace

DeviceWorkspace::~DeviceWorkspace() {
  for (const Block& block : in_use_) device_.free(block.memory);
  for (const Block& block : unused_) device_.free(block.memory);
}

void* DeviceWorkspace::allocate(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  in_use_.reserve(in_use_.size() + 1);
  unused_.reserve(in_use_.size() + unused_.size() + 1);
  const auto smaller = [](const Block& a, const Block& b) { return a.bytes < b.bytes; };
  auto best = unused_.end();
  for (auto block = unused_.begin(); block != unused_.end(); ++block) {
    if (block->bytes >= bytes && (best == unused_.end() || smaller(*block, *best))) best = block;
  }
  if (best != unused_.end()) {
    in_use_.push_back(*best);
    unused_.erase(best);
    return in_use_.back().memory;
  }
  // All are too small: a larger one takes the place of the largest.
  const auto largest = std::max_element(unused_.begin(), unused_.end(), smaller);
  if (largest != unused_.end() && !keep_) {
    void* memory = largest->memory;
    unused_.erase(largest);
    device_.free(memory);
  }
  in_use_.push_back({device_.allocate(bytes), bytes});
  return in_use_.back().memory;
}

bool DeviceWorkspace::free(void* memory) noexcept {
  const auto block = std::find_if(in_use_.rbegin(), in_use_.rend(),
                                  [&](const Block& b) { return b.memory == memory; });
  if (block == in_use_.rend()) return false;
  unused_.push_back(*block);
  in_use_.erase(std::next(block).base());
  return true;
}

std::size_t DeviceWorkspace::held_bytes() const {
  std::size_t total = 0;
  for (const Block& block : in_use_) total += block.bytes;
  for (const Block& block : unused_) total += block.bytes;
  return total;
}

OpenDevice::OpenDevice(std::unique_ptr<Device> device)
    : device_(std::move(device)),
      name_(device_name(device_->id()) + " (" + device_->info().name + ")"),
      workspace_(*device_) {}

DeviceDriver* driver_for(DLDeviceType type) {
  for (DeviceDriver* driver : device_drivers()) {
    if (driver->type() == type) return driver;
  }
  return nullptr;
}

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
