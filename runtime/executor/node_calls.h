// The compiled functions that a graph calls, each with its arguments laid out.
#pragma once

#include <cstddef>
#include <vector>

#include <run_model/packed_function.h>
#include "runtime/executor/model_loader.h"
#include "runtime/memory/entry_storage.h"
#include "runtime/relax/values.h"

namespace run_model {

// Runs the nodes of a graph that are no inputs: node i here is the i-th of them.
class NodeCalls {
 public:
  // `model` and `entries` must outlive this. Throws Error(kMismatch) for a function that the
  // library does not have.
  NodeCalls(const LoadedModel& model, EntryStorage& entries);
  NodeCalls(const NodeCalls&) = delete;
  NodeCalls& operator=(const NodeCalls&) = delete;

  // Throw Error(kModel) when a function reports failure; run() throws std::out_of_range too.
  void run_all();
  void run(std::size_t node);

  // Which nodes of the graph they are.
  const std::vector<std::size_t>& in_graph() const { return in_graph_; }

 private:
  // A node that does something when it is run.
  struct Call {
    // Null both: copy the first argument to the second.
    PackedFunction function = nullptr;
    FfiFunction ffi = nullptr;
    bool interpreted = false;
    std::size_t node = 0;            // in the graph
    std::size_t first_argument = 0;  // in values_ and type_codes_, or in ffi_values_
    int num_arguments = 0;
    bool joined = false;   // nothing to do: the inputs lie where the function would copy them to
    bool checked = false;  // the function was seen to leave them there
  };

  Call prepare_call(std::size_t number);
  void add_argument(std::size_t entry, bool flatten);
  void prepare_ffi_call(const GraphNode& node, Call& call);
  void execute(Call& call);
  void check_join(Call& call);
  void execute_now(const Call& call);
  void interpret(const GraphNode& node);
  [[noreturn]] void throw_missing(const GraphNode& node) const;
  [[noreturn]] void throw_failure(const Call& call) const;

  const LoadedModel& model_;
  EntryStorage& entries_;
  std::vector<std::size_t> in_graph_;
  std::vector<std::size_t> call_of_node_;
  std::vector<Call> calls_;
  std::vector<PackedValue> values_;
  std::vector<int> type_codes_;
  std::vector<FfiValue> ffi_values_;
};

}  // namespace run_model
