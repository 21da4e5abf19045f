// Which tensors of a graph share memory, and proof that none is overwritten while it is needed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <run_model/graph.h>

namespace run_model {

struct StoragePlan {
  // Bytes of each storage number: the largest of the entries in it.
  std::vector<std::size_t> storage_bytes;

  // For each entry the first entry that is the same tensor: itself, or through __nop nodes an
  // earlier one in the same storage. Entries with the same alias always have the same address.
  std::vector<std::size_t> alias_of;
};

// Follows the compiler's assignment of tensors to storages through the nodes in running order.
// Throws Error(kFormat) where a node would read a tensor, or a caller an output, after its storage
// was given to another, or where an input's or parameter's storage is ever written: such a graph
// runs without complaint and computes nonsense.
StoragePlan plan_storage(const Graph& graph, const std::string& source);

}  // namespace run_model
