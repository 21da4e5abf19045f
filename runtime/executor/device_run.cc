#include "runtime/executor/device_run.h"

#include <algorithm>

namespace run_model {

DeviceRun::DeviceRun(const LoadedModel& model, NodeCalls& calls) : model_(model), calls_(calls) {}

// The model's devices are in the order of their kinds, so that no two wait for each other.
std::vector<std::unique_lock<std::recursive_mutex>> DeviceRun::lock() const {
  std::vector<std::unique_lock<std::recursive_mutex>> locks;
  for (const auto& device : model_.devices) locks.emplace_back(device->mutex());
  return locks;
}

bool DeviceRun::recordable() const {
  if (model_.devices.size() != 1) return false;
  const DLDeviceType type = model_.devices.front()->id().device_type;
  return std::all_of(model_.graph.entries.begin(), model_.graph.entries.end(),
                     [&](const GraphEntry& entry) { return entry.device == type; });
}

void DeviceRun::start() {
  for (const auto& device : model_.devices) device->device().require_alive();
  if (recording_ != nullptr) {
    recording_->replay();
  } else {
    // The first run finds what fails, node by node, and how much workspace there has to be.
    if (runs_ == 1 && recordable()) {
      OpenDevice& device = *model_.devices.front();
      device.workspace().keep_blocks();
      recording_ = device.device().record([this] { calls_.run_all(); });
    }
    if (recording_ != nullptr) {
      recording_->replay();
    } else {
      calls_.run_all();
    }
  }
  if (runs_ < 2) ++runs_;
  for (const auto& device : model_.devices) device->device().submit();
}

void DeviceRun::forget() {
  const auto locks = lock();
  wait();
  recording_ = nullptr;
  runs_ = 0;
}

void DeviceRun::wait() {
  for (const auto& device : model_.devices) device->device().wait();
}

}  // namespace run_model
