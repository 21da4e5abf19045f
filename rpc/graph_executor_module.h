// The functions of a graph executor as TVM's GraphModule calls them (graph_executor.cc and
// graph_executor.py, v0.18.0).
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <run_model/debug_executor.h>
#include <run_model/rpc/function.h>

namespace run_model::rpc {

class GraphExecutorModule : public RemoteModule {
 public:
  explicit GraphExecutorModule(DebugExecutor executor) : executor_(std::move(executor)) {}

  std::string kind() const override { return "GraphExecutor"; }
  FunctionPointer find(const std::string& name) override;

 protected:
  DebugExecutor& executor() { return executor_; }
  const DebugExecutor& executor() const { return executor_; }

  Value run(const Arguments& arguments);

  // The outputs as an array that clients cannot read: only for measuring what a run from inputs to
  // outputs takes (GraphModule.benchmark(end_to_end=True)).
  Value run_from_inputs(const Arguments& arguments);

 private:
  Value set_input(const Arguments& arguments);
  Value set_input_zero_copy(const Arguments& arguments);
  Value set_output_zero_copy(const Arguments& arguments);
  Value get_input(const Arguments& arguments);
  Value get_output(const Arguments& arguments);
  Value get_num_inputs(const Arguments& arguments);
  Value get_num_outputs(const Arguments& arguments);
  Value get_input_index(const Arguments& arguments);
  Value get_info(const Arguments& arguments);
  Value load_parameters(const Arguments& arguments);
  Value share_parameters(const Arguments& arguments);

  // By index or name; nothing for a name that the graph does not have.
  std::optional<std::size_t> graph_argument(const Arguments& arguments, std::size_t i) const;
  std::string output_name(std::size_t output) const;

  DebugExecutor executor_;
};

// Copies `source` to the tensor that is argument `i`, which must be of the same form.
void copy_to_argument(const Tensor& source, const Arguments& arguments, std::size_t i);

// Throws unless arguments `i` and `i` + 1 are TVM's numbers of the CPU and of one of its kind.
void check_cpu_numbers(const Arguments& arguments, std::size_t i);

}  // namespace run_model::rpc
