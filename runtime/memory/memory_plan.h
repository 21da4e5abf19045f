// Where the tensors of a graph lie in one block of memory on each device.
#pragma once

#include <cstddef>
#include <limits>
#include <map>
#include <vector>

#include <run_model/graph.h>
#include "runtime/memory/storage_plan.h"

namespace run_model {

struct MemoryPlan {
  static constexpr std::size_t kNotPlaced = std::numeric_limits<std::size_t>::max();

  // Bytes of the CPU's block, a multiple of kTensorAlignment, and of the others'.
  std::size_t bytes = 0;
  std::map<DLDeviceType, std::size_t> device_bytes;
  std::size_t& bytes_on(DLDeviceType device) {
    return device == kDLCPU ? bytes : device_bytes[device];
  }

  // Of each entry, in bytes from its device's block's start, aligned as that demands; kNotPlaced
  // for parameters.
  std::vector<std::size_t> offset;

  // For each entry the entry whose memory it lies in: its alias, or the result of a concatenation
  // that it is a part of. Entries with the same root keep their distance if the root is moved.
  std::vector<std::size_t> root;

  // Nodes that copy their inputs behind each other to where these lie already.
  std::vector<bool> joined;
};

enum class MemoryPlanning {
  // Shared by tensors whose lifetimes do not touch, as tightly as a greedy search finds: less
  // memory
  // than the compiler's assignment needs, so more of it stays in the caches. The inputs of a plain
  // concatenation are put behind each other, which leaves nothing to do for the node itself.
  kTight,
  // One storage after the other, as the compiler assigned them.
  kCompiler,
};

// `is_param[entry]` tells which entries lie elsewhere. Inputs keep their memory for good. Throws
// Error(kFormat) for more memory than there are addresses.
//
// The greedy search (largest tensor first, each at the lowest free address over its lifetime) is
// "greedy by size" of Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
// Inference" (2020), section 5.2. It compares pairs: graphs with more than kMostTightEntries
// entries are laid out as the compiler said.
//
// On the CPU tensors are aligned to kTensorAlignment, elsewhere to that and to `alignments`, which
// has all devices of the graph.
inline constexpr std::size_t kMostTightEntries = 8192;
using DeviceAlignments = std::map<DLDeviceType, std::size_t>;
MemoryPlan plan_memory(const Graph& graph, const StoragePlan& storages,
                       const std::vector<bool>& is_param, MemoryPlanning planning,
                       const DeviceAlignments& alignments = {});

}  // namespace run_model
