// What GraphExecutor and DebugExecutor are made of.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include <run_model/graph_executor.h>
#include "runtime/call_context.h"
#include "runtime/entry_storage.h"
#include "runtime/model_loader.h"
#include "runtime/node_calls.h"

namespace run_model {

// An argument is an input or a parameter of the graph, numbered as the graph lists them.
class GraphExecutor::Impl {
 public:
  Impl(LoadedModel model, const ExecutorOptions& options);

  const Graph& graph() const { return model_.graph; }
  const EntryStorage& entries() const { return entries_; }
  const NodeCalls& calls() const { return calls_; }
  const std::vector<TensorInfo>& arguments() const { return arguments_; }
  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  MemoryAccount memory() const;

  std::size_t input_index(std::string_view name) const;
  std::size_t argument_of_input(std::size_t input) const { return input_arguments_.at(input); }

  Tensor input(std::size_t index);
  void set_input(std::size_t index, const Tensor& tensor);
  Tensor argument(std::size_t index);
  void set_argument(std::size_t index, const Tensor& tensor);
  void set_argument_zero_copy(std::size_t index, const Tensor& tensor);
  Tensor output(std::size_t index) const;
  void set_output_zero_copy(std::size_t index, const Tensor& tensor);

  void set_threads(std::shared_ptr<ThreadPool> threads);
  void run();
  void run_node(std::size_t index);

 private:
  void describe_interface();
  std::size_t argument_entry(std::size_t argument) const;
  std::shared_ptr<ThreadPool> pool() const;
  void check_all_set() const;

  LoadedModel model_;
  std::shared_ptr<ThreadPool> threads_;  // null: the process-wide one
  EntryStorage entries_;
  NodeCalls calls_;

  std::vector<TensorInfo> arguments_;
  std::vector<bool> set_;  // by argument
  std::vector<TensorInfo> inputs_;
  std::vector<std::size_t> input_arguments_;
  std::vector<TensorInfo> outputs_;
  std::vector<const void*> output_memory_;  // what the caller gave for each; null: nothing yet
  std::vector<bool> placed_by_caller_;      // entries that are parameters or inputs
};

}  // namespace run_model
