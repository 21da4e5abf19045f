// The devices that a graph and its library need.
#pragma once

#include <vector>

#include <run_model/graph.h>
#include <run_model/module.h>
#include "runtime/devices/open_device.h"

namespace run_model {

// Opens what the graph places entries on, of each kind the device that `wanted` says or the first,
// and compiles the library's kernels for it. A graph that says nothing of devices is placed on the
// one that the library has code for. Throws Error(kIncompatible) where a driver or a device is not
// there or cannot do what the code asks, Error(kMismatch) where the library has no code for a
// device of the graph, or `wanted` names a kind that the model does not use.
GraphDevices open_graph_devices(Graph& graph, const Module& library,
                                const std::vector<DLDevice>& wanted);

}  // namespace run_model
