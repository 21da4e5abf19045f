// Runs of a graph that computes on devices.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/devices/device.h"
#include "runtime/executor/model_loader.h"
#include "runtime/executor/node_calls.h"

namespace run_model {

class DeviceRun {
 public:
  // Both must outlive this.
  DeviceRun(const LoadedModel& model, NodeCalls& calls);

  bool uses_devices() const { return !model_.devices.empty(); }

  // Keeps others from the devices while it lives.
  std::vector<std::unique_lock<std::recursive_mutex>> lock() const;

  // Hands all nodes to the devices; with several or with the CPU it waits where one needs what
  // another makes. Where everything is on one device, launches are noted at the second run and then
  // repeated as one, as far as the device can.
  void start();
  void wait();

  // After the memory of an entry has changed: waits for what uses the old one, and notes the
  // launches anew.
  void forget();

 private:
  bool recordable() const;

  const LoadedModel& model_;
  NodeCalls& calls_;
  std::size_t runs_ = 0;
  std::unique_ptr<DeviceRecording> recording_;
};

}  // namespace run_model
