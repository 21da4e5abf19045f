// Where the tensors of a graph lie while it is run.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <run_model/graph.h>
#include <run_model/tensor.h>
#include "runtime/devices/open_device.h"
#include "runtime/loading/param_binding.h"
#include "runtime/memory/entry_placement.h"
#include "runtime/memory/memory_plan.h"
#include "runtime/memory/storage_plan.h"

namespace run_model {

// How compiled code expects tensors to be described.
struct TensorConvention {
  bool strides = false;                 // also where elements lie densely
  DLDataType bool_type{kDLUInt, 1, 1};  // how bool is said
};

// Gives every entry of a graph its address: on the CPU parameters where they are bound, the others
// a place in one block of zeroed memory; on devices what EntryPlacement says.
class EntryStorage {
 public:
  // `graph` must outlive this. `devices` has all that it places entries on. Throws
  // Error(kIncompatible) when the machine or a device lacks the memory.
  EntryStorage(const Graph& graph, const StoragePlan& storages, const ParamBinding& params,
               MemoryPlanning planning, const TensorConvention& convention = {},
               const GraphDevices& devices = {});
  EntryStorage(const EntryStorage&) = delete;
  EntryStorage& operator=(const EntryStorage&) = delete;

  const MemoryPlan& plan() const { return plan_; }

  // What compiled functions are given; stays where it is, its data moves with the entry. `flatten`
  // makes it one-dimensional for good.
  DLTensor* argument(std::size_t entry, bool flatten);
  void* data(std::size_t entry) const { return arguments_[entry].data; }

  // The device that the entry lies on, null for the CPU. Of such entries data() is a handle.
  OpenDevice* device_of(std::size_t entry) const { return devices_[entry]; }
  const std::vector<std::unique_ptr<EntryPlacement>>& placements() const { return placements_; }

  // The entry's memory as it is now, kept alive by the tensor; of one on a device a copy.
  Tensor tensor(std::size_t entry) const;

  // Copies the values of one entry to another of the same size, wherever they lie.
  void copy(std::size_t from, std::size_t to);

  // Of an entry on a device: memory of the host that it is copied to and from fastest, zeroed.
  Tensor host_memory(std::size_t entry) const;
  void upload(std::size_t entry, const void* from);
  void download(std::size_t entry, void* to) const;

  // Moves an entry on a device, and all that lies in the same memory with it, to memory with this
  // handle, which the caller keeps; and back to its own place.
  void place_at(std::size_t entry, void* handle);
  void place_home(std::size_t entry);

  // Moves an entry, and all that lies in the same memory with it, to `tensor`'s memory. This and
  // what follows is for entries on the CPU.
  void move_to(std::size_t entry, const Tensor& tensor);

  // Moves an entry that is no parameter back to its place in the block.
  void move_home(std::size_t entry);

  // Copies the entry to memory of its own unless it can be written where it is: parameters in a
  // mapped file or library cannot.
  void make_writable(std::size_t entry);

 private:
  void add_strides();
  void place_on(const std::shared_ptr<OpenDevice>& device, const ParamBinding& params);
  void move(std::size_t entry, void* data, const std::shared_ptr<void>& owner);

  const Graph& graph_;
  MemoryPlan plan_;
  std::shared_ptr<char> block_;
  std::vector<std::unique_ptr<EntryPlacement>> placements_;
  std::vector<OpenDevice*> devices_;  // of each entry
  std::vector<DLTensor> arguments_;
  std::vector<std::shared_ptr<void>> owners_;  // of each entry's memory
  std::vector<bool> read_only_;
  std::vector<std::int64_t> flat_size_;
  std::vector<std::vector<std::int64_t>> strides_;  // empty where nobody wants them
};

}  // namespace run_model
