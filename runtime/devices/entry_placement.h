// Where the tensors of a graph that lie on devices are.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <run_model/graph.h>
#include "runtime/devices/device_memory.h"
#include "runtime/memory_plan.h"
#include "runtime/param_binding.h"

namespace run_model {

// The devices of a graph, one of each kind.
using GraphDevices = std::vector<std::shared_ptr<OpenDevice>>;

DeviceAlignments alignments_of(const GraphDevices& devices);

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
