// Which tensors are needed while each node runs.
#pragma once

#include <cstddef>
#include <vector>

#include <run_model/graph.h>

namespace run_model {

// What an executable node (DebugExecutor::nodes() has the same order) reads, writes and leaves in
// place for others. Bytes.
struct NodeMemory {
  std::size_t read = 0;        // distinct tensors
  std::size_t parameters = 0;  // part of `read`
  std::size_t written = 0;
  std::size_t live = 0;            // without parameters
  bool is_view = false;            // nothing is read or written: the output is there already
  std::vector<bool> is_parameter;  // one for each input
};

// A tensor is live from the node that writes it (a model's input: from the start) to the last node
// that reads it (a model's output: to the end). `is_parameter` has an element for each of
// graph.nodes, `joined` (NodeInfo::joined) for each executable node: a joined node's inputs go on
// as parts of its output.
std::vector<NodeMemory> node_memory(const Graph& graph, const std::vector<bool>& is_parameter,
                                    const std::vector<bool>& joined);

}  // namespace run_model
