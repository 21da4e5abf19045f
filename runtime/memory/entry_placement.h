// Where the tensors of a graph that lie on devices are.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <run_model/graph.h>
#include "runtime/devices/open_device.h"
#include "runtime/loading/param_binding.h"
#include "runtime/memory/memory_plan.h"

namespace run_model {

// Memory on a device that is freed together.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::shared_ptr<OpenDevice> device) : device_(std::move(device)) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  OpenDevice& device() const { return *device_; }
  std::size_t bytes() const { return bytes_; }

  // Zeroed. Throws as Device::allocate does.
  void* allocate(std::size_t bytes);
  // Of something that allocate() gave; Device::part_alignment() holds.
  void* part(void* memory, std::size_t offset, std::size_t bytes);

 private:
  std::shared_ptr<OpenDevice> device_;
  std::size_t bytes_ = 0;
  std::vector<void*> blocks_;
  std::vector<void*> parts_;
};

// The tensors on one device: activations as planned, in one block where the device gives so much in
// one piece, and parameters, which are copied to it here.
class EntryPlacement {
 public:
  // Throws as the device does.
  EntryPlacement(std::shared_ptr<OpenDevice> device, const Graph& graph, const MemoryPlan& plan,
                 const ParamBinding& params);

  OpenDevice& device() const { return memory_.device(); }
  // By entry; null for those that are elsewhere.
  const std::vector<void*>& handles() const { return handles_; }
  std::size_t param_bytes() const { return param_bytes_; }
  std::size_t activation_bytes() const { return memory_.bytes() - param_bytes_; }

 private:
  void place_params(const Graph& graph, const MemoryPlan& plan, const ParamBinding& params);
  void place_activations(const Graph& graph, const MemoryPlan& plan);
  bool fits_in_one_piece(std::size_t bytes) const;

  DLDeviceType type_;
  DeviceMemory memory_;
  std::vector<void*> handles_;
  std::size_t param_bytes_ = 0;
};

}  // namespace run_model
