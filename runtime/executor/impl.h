// What GraphExecutor and DebugExecutor are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <run_model/graph_executor.h>
#include "runtime/executor/device_run.h"
#include "runtime/executor/host_sides.h"
#include "runtime/executor/model_loader.h"
#include "runtime/executor/node_calls.h"
#include "runtime/memory/entry_storage.h"
#include "runtime/threads/call_context.h"

namespace run_model {

// Throws Error(kMismatch), which begins with `what`, for a tensor of another shape or type.
void check_form(const TensorInfo& expected, const Tensor& given, const char* what);

// The numbers of a tensor, to one of the same form.
void copy_numbers(const Tensor& source, const Tensor& target);

// An argument is an input or a parameter of the graph, numbered as the graph lists them.
class GraphExecutor::Impl {
 public:
  Impl(LoadedModel model, const ExecutorOptions& options);

  const Graph& graph() const { return now_->model.graph; }
  const EntryStorage& entries() const { return now_->entries; }
  const NodeCalls& calls() const { return now_->calls; }
  // Another number whenever the model was made anew, for inputs of other shapes.
  std::size_t generation() const { return generation_; }
  const std::vector<TensorInfo>& arguments() const { return arguments_; }
  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs();
  const std::vector<std::int64_t>& output_tuples() const;
  MemoryAccount memory() const;
  std::vector<std::string> devices() const;

  std::size_t input_index(std::string_view name) const;
  std::size_t argument_of_input(std::size_t input) const { return input_arguments_.at(input); }

  Tensor input(std::size_t index);
  void set_input(std::size_t index, const Tensor& tensor);
  Tensor argument(std::size_t index);
  void set_argument(std::size_t index, const Tensor& tensor);
  void set_argument_zero_copy(std::size_t index, const Tensor& tensor);
  void set_input_zero_copy(std::size_t index, const DeviceTensor& tensor);
  Tensor output(std::size_t index);
  void set_output_zero_copy(std::size_t index, const Tensor& tensor);
  void set_output_zero_copy(std::size_t index, const DeviceTensor& tensor);

  void set_threads(std::shared_ptr<ThreadPool> threads);
  void run();
  void run_async();
  void wait();
  void run_node(std::size_t index);
  // Seconds of the device's time; nothing for a node that runs on the CPU.
  std::optional<double> run_node_timed(std::size_t index);
  OpenDevice* device_of_node(std::size_t index) const;

 private:
  // A model and all that running it takes. NodeCalls points into the others.
  struct Prepared {
    Prepared(LoadedModel loaded, MemoryPlanning planning)
        : model(std::move(loaded)),
          entries(model.graph, model.plan, model.params, planning, model.convention, model.devices),
          calls(model, entries),
          sides(entries) {}

    LoadedModel model;
    EntryStorage entries;
    NodeCalls calls;
    HostSides sides;
    DeviceRun device_run{model, calls};
    std::vector<std::vector<std::int64_t>> shapes;  // of the inputs it was made for, by argument
  };
  // An input that waits for others, which it contradicts until they are given too.
  struct Waiting {
    Tensor tensor;
    bool in_place = false;
  };

  void describe_interface();
  Tensor tensor_to_read(std::size_t entry);
  void describe_outputs();
  bool takes_shape(std::size_t argument, const Tensor& tensor, bool in_place);
  void switch_to_shapes();
  void hand_over(Prepared& from);
  void check_waiting() const;
  void run_calls();
  void start_calls();
  void or_no_outputs(const std::function<void()>& work);
  void require_graph_outputs() const;
  void check_output_memory(std::size_t index, const void* given) const;
  void check_device_memory(const TensorInfo& info, std::size_t entry,
                           const DeviceTensor& tensor) const;
  void check_overlaps();
  void place_on_device(std::size_t entry, const DeviceTensor& tensor);
  void bring_home(std::size_t entry);
  bool on_device(std::size_t entry) const { return now_->entries.device_of(entry) != nullptr; }
  std::size_t argument_entry(std::size_t argument) const;
  std::shared_ptr<ThreadPool> pool() const;
  void check_all_set() const;

  MemoryPlanning planning_;
  std::vector<std::unique_ptr<Prepared>> prepared_;  // the one in use last
  Prepared* now_;
  std::size_t generation_ = 0;
  std::shared_ptr<ThreadPool> threads_;  // null: the process-wide one
  bool require_inputs_;

  // Of models whose inputs may have several shapes, by argument: the shapes that were given last,
  // the tensors that wait, and those that are read where the caller has them.
  std::vector<std::vector<std::int64_t>> shapes_;
  std::vector<Waiting> waiting_;
  std::vector<Tensor> in_place_;

  std::vector<TensorInfo> arguments_;
  std::vector<bool> set_;  // by argument
  std::vector<TensorInfo> inputs_;
  std::vector<std::size_t> input_arguments_;
  std::vector<TensorInfo> outputs_;
  std::vector<const void*> output_memory_;  // what the caller gave for each; null: nothing yet
  std::vector<bool> placed_by_caller_;      // entries that are parameters or inputs
  std::map<std::size_t, DeviceTensor> on_devices_;  // that the caller gave, by entry
  bool overlaps_checked_ = true;
  std::exception_ptr failure_;  // of the last run: there are no outputs
};

}  // namespace run_model
