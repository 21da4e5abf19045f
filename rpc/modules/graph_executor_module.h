// The functions of a graph executor as TVM's GraphModule calls them (graph_executor.cc and
// graph_executor.py, v0.18.0).
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/debug_executor.h>
#include <run_model/module.h>
#include <run_model/rpc/function.h>

namespace run_model::rpc {

// Functions of a module that are methods of its class.
template <typename Module>
using Methods = std::map<std::string_view, Value (Module::*)(const Arguments&)>;

// Function `name` of `self`, which it keeps alive. Null where `methods` has none.
template <typename Module>
FunctionPointer bind_method(std::shared_ptr<Module> self, const Methods<Module>& methods,
                            const std::string& name) {
  const auto found = methods.find(name);
  if (found == methods.end()) return nullptr;
  return make_function(
      name, [self = std::move(self), method = found->second](const Arguments& arguments) {
        return (self.get()->*method)(arguments);
      });
}

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

// The options of every executor that a client makes: as with TVM, it may run a graph, or measure
// it, without having set an input.
ExecutorOptions client_options(std::vector<DLDevice> devices = {});

// The executor of a graph that the client has sent as JSON, its parameters still to be set.
std::shared_ptr<RemoteModule> make_graph_executor(const std::shared_ptr<Module>& library,
                                                  const std::string& graph_json,
                                                  std::vector<DLDevice> devices = {});

// The executor of a single-file export, with the parameters that lie in it.
std::shared_ptr<RemoteModule> make_graph_executor(const std::shared_ptr<Module>& library,
                                                  std::vector<DLDevice> devices = {});

// Copies `source` to the tensor that is argument `i`, which must be of the same form.
void copy_to_argument(const Tensor& source, const Arguments& arguments, std::size_t i);

// Arguments `i` and `i` + 1: TVM's numbers of a kind of devices and of one of them. Throws for
// kinds that this server cannot have.
Device device_numbers(const Arguments& arguments, std::size_t i);
// The same, and throws unless it is the CPU.
void check_cpu_numbers(const Arguments& arguments, std::size_t i);

}  // namespace run_model::rpc
