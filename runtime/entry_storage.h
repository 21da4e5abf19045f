// Where the tensors of a graph lie while it is run.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <run_model/graph.h>
#include <run_model/tensor.h>
#include "runtime/memory_plan.h"
#include "runtime/param_binding.h"
#include "runtime/storage_plan.h"

namespace run_model {

// How compiled code expects tensors to be described.
struct TensorConvention {
  bool strides = false;                 // also where elements lie densely
  DLDataType bool_type{kDLUInt, 1, 1};  // how bool is said
};

// Gives every entry of a graph its address: parameters where they are bound, the others a place in
// one block of zeroed memory.
class EntryStorage {
 public:
  // `graph` must outlive this. Throws Error(kIncompatible) when the machine lacks the memory.
  EntryStorage(const Graph& graph, const StoragePlan& storages, const ParamBinding& params,
               MemoryPlanning planning, const TensorConvention& convention = {});
  EntryStorage(const EntryStorage&) = delete;
  EntryStorage& operator=(const EntryStorage&) = delete;

  const MemoryPlan& plan() const { return plan_; }

  // What compiled functions are given; stays where it is, its data moves with the entry. `flatten`
  // makes it one-dimensional for good.
  DLTensor* argument(std::size_t entry, bool flatten);
  void* data(std::size_t entry) const { return arguments_[entry].data; }

  // The entry's memory as it is now, kept alive by the tensor.
  Tensor tensor(std::size_t entry) const;

  // Moves an entry, and all that lies in the same memory with it, to `tensor`'s memory.
  void move_to(std::size_t entry, const Tensor& tensor);

  // Moves an entry that is no parameter back to its place in the block.
  void move_home(std::size_t entry);

  // Copies the entry to memory of its own unless it can be written where it is: parameters in a
  // mapped file or library cannot.
  void make_writable(std::size_t entry);

 private:
  void add_strides();
  void move(std::size_t entry, void* data, const std::shared_ptr<void>& owner);

  const Graph& graph_;
  MemoryPlan plan_;
  std::shared_ptr<char> block_;
  std::vector<DLTensor> arguments_;
  std::vector<std::shared_ptr<void>> owners_;  // of each entry's memory
  std::vector<bool> read_only_;
  std::vector<std::int64_t> flat_size_;
  std::vector<std::vector<std::int64_t>> strides_;  // empty where nobody wants them
};

}  // namespace run_model
