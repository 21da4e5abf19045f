#include "rpc/modules/graph_executor_module.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/text.h"
#include "rpc/device_buffer.h"
#include "runtime/loading/params_file.h"

namespace run_model::rpc {
namespace {

constexpr const char* kGivenParams = "the parameter file that the client sent";

class TensorArray final : public RemoteObject {
 public:
  explicit TensorArray(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {}
  std::string kind() const override { return "Array"; }

 private:
  std::vector<Tensor> tensors_;
};

std::int64_t last_index(std::size_t count) { return static_cast<std::int64_t>(count) - 1; }

}  // namespace

ExecutorOptions client_options(std::vector<DLDevice> devices) {
  ExecutorOptions options;
  options.devices = std::move(devices);
  options.require_inputs = false;
  return options;
}

std::shared_ptr<RemoteModule> make_graph_executor(const std::shared_ptr<Module>& library,
                                                  const std::string& graph_json,
                                                  std::vector<DLDevice> devices) {
  return std::make_shared<GraphExecutorModule>(
      DebugExecutor(library, graph_json, client_options(std::move(devices))));
}

std::shared_ptr<RemoteModule> make_graph_executor(const std::shared_ptr<Module>& library,
                                                  std::vector<DLDevice> devices) {
  return std::make_shared<GraphExecutorModule>(
      DebugExecutor(library, client_options(std::move(devices))));
}

void copy_to_argument(const Tensor& source, const Arguments& arguments, std::size_t i) {
  const TensorArgument& argument = arguments.any_tensor(i);
  const Tensor& target = argument.tensor;
  if (target.shape() != source.shape() || !same_dtype(target.dtype(), source.dtype())) {
    arguments.fail(i, "one of " + tensor_form_name(source.dtype(), source.shape()) + " (it is " +
                          tensor_form_name(target.dtype(), target.shape()) + ")");
  }
  copy_between({source}, argument);
}

Device device_numbers(const Arguments& arguments, std::size_t i) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const Device device{static_cast<std::int32_t>(arguments.integer_within(i, 0, kMost)),
                      static_cast<std::int32_t>(arguments.integer_within(i + 1, 0, kMost))};
  dl_device(device);
  if (is_gpu(device)) session_device(device);
  return device;
}

void check_cpu_numbers(const Arguments& arguments, std::size_t i) {
  const std::int64_t type = arguments.integer(i);
  if (type != kDLCPU) {
    throw Error(ErrorKind::kMismatch, "the model is to run on device type " + std::to_string(type) +
                                          ", but this server has the CPU (device type 1) only");
  }
  arguments.integer_within(i + 1, 0, std::numeric_limits<std::int32_t>::max());
}

FunctionPointer GraphExecutorModule::find(const std::string& name) {
  using Self = GraphExecutorModule;
  static const Methods<Self> methods = {
      {"set_input", &Self::set_input},
      {"set_input_zero_copy", &Self::set_input_zero_copy},
      {"set_output_zero_copy", &Self::set_output_zero_copy},
      {"get_input", &Self::get_input},
      {"get_output", &Self::get_output},
      {"get_num_inputs", &Self::get_num_inputs},
      {"get_num_outputs", &Self::get_num_outputs},
      {"get_input_index", &Self::get_input_index},
      {"get_input_info", &Self::get_info},
      {"get_output_info", &Self::get_info},
      {"run", &Self::run},
      {"run_from_inputs", &Self::run_from_inputs},
      {"load_params", &Self::load_parameters},
      {"share_params", &Self::share_parameters},
  };
  return bind_method(std::static_pointer_cast<Self>(shared_from_this()), methods, name);
}

std::optional<std::size_t> GraphExecutorModule::graph_argument(const Arguments& arguments,
                                                               std::size_t i) const {
  if (arguments.is_text(i)) return executor_.argument_index(arguments.text(i));
  return arguments.integer_within(i, 0, last_index(executor_.arguments().size()));
}

std::string GraphExecutorModule::output_name(std::size_t output) const {
  const Graph& graph = executor_.graph();
  const std::size_t entry = graph.outputs[output];
  for (const GraphNode& node : graph.nodes) {
    if (entry < node.first_output + node.num_outputs) return node.name;
  }
  return {};
}

Value GraphExecutorModule::set_input(const Arguments& arguments) {
  arguments.check_count(2, 2);
  const auto index = graph_argument(arguments, 0);
  if (index) executor_.set_argument(*index, arguments.tensor(1).tensor);
  return {};
}

Value GraphExecutorModule::set_input_zero_copy(const Arguments& arguments) {
  arguments.check_count(2, 2);
  const auto index = graph_argument(arguments, 0);
  if (index) executor_.set_argument_zero_copy(*index, arguments.tensor(1).tensor);
  return {};
}

// TVM names an output by its node and its position: "dense:0".
Value GraphExecutorModule::set_output_zero_copy(const Arguments& arguments) {
  arguments.check_count(2, 2);
  const Tensor& tensor = arguments.tensor(1).tensor;
  const std::size_t count = executor_.outputs().size();
  if (!arguments.is_text(0)) {
    executor_.set_output_zero_copy(arguments.integer_within(0, 0, last_index(count)), tensor);
    return {};
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (output_name(i) + ":" + std::to_string(i) == arguments.text(0)) {
      executor_.set_output_zero_copy(i, tensor);
    }
  }
  return {};
}

Value GraphExecutorModule::get_input(const Arguments& arguments) {
  arguments.check_count(1, 1);
  const auto index = graph_argument(arguments, 0);
  if (!index) return {};
  return ArrayResult{executor_.argument(*index)};
}

Value GraphExecutorModule::get_output(const Arguments& arguments) {
  arguments.check_count(1, 2);
  const std::size_t count = executor_.outputs().size();
  std::optional<std::size_t> output;
  if (arguments.is_text(0)) {
    for (std::size_t i = 0; i < count; ++i) {
      if (output_name(i) == arguments.text(0)) output = i;
    }
    if (!output) {
      throw Error(ErrorKind::kMismatch,
                  "the graph has no output of the name " + in_quotes(arguments.text(0)));
    }
  } else {
    output = arguments.integer_within(0, 0, last_index(count));
  }
  if (arguments.size() == 1) return ArrayResult{executor_.output(*output)};
  copy_to_argument(executor_.output(*output), arguments, 1);
  return {};
}

Value GraphExecutorModule::get_num_inputs(const Arguments&) {
  return static_cast<std::int64_t>(executor_.arguments().size());
}

Value GraphExecutorModule::get_num_outputs(const Arguments&) {
  return static_cast<std::int64_t>(executor_.outputs().size());
}

Value GraphExecutorModule::get_input_index(const Arguments& arguments) {
  arguments.check_count(1, 1);
  const auto index = executor_.argument_index(arguments.text(0));
  return index ? static_cast<std::int64_t>(*index) : std::int64_t{-1};
}

// TVM answers with maps, which its clients can make no use of over RPC.
Value GraphExecutorModule::get_info(const Arguments&) {
  throw Error(ErrorKind::kUsage,
              "the inputs and outputs cannot be listed over RPC, where TVM's maps cannot travel",
              "take them from the graph's JSON, or ask get_input(name) and get_output(index) for "
              "their shape and dtype");
}

Value GraphExecutorModule::run(const Arguments& arguments) {
  arguments.check_count(0, 0);
  executor_.run();
  return {};
}

Value GraphExecutorModule::run_from_inputs(const Arguments& arguments) {
  device_numbers(arguments, 0);
  if (arguments.size() % 2 != 0) {
    throw Error(
        ErrorKind::kMismatch,
        "the function 'run_from_inputs' takes a device's two numbers and pairs of an input and "
        "its value, but was given " +
            std::to_string(arguments.size()) + " arguments");
  }
  for (std::size_t i = 2; i < arguments.size(); i += 2) {
    const auto index = graph_argument(arguments, i);
    if (!index) {
      throw Error(ErrorKind::kMismatch,
                  "the graph has no input of the name " + in_quotes(arguments.text(i)));
    }
    executor_.set_argument(*index, arguments.tensor(i + 1).tensor);
  }
  executor_.run();
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < executor_.outputs().size(); ++i) {
    outputs.push_back(executor_.output(i).clone());
  }
  return std::make_shared<TensorArray>(std::move(outputs));
}

Value GraphExecutorModule::load_parameters(const Arguments& arguments) {
  arguments.check_count(1, 1);
  executor_.load_params(arguments.bytes(0), kGivenParams);
  return {};
}

Value GraphExecutorModule::share_parameters(const Arguments& arguments) {
  arguments.check_count(2, 2);
  const auto other = std::dynamic_pointer_cast<GraphExecutorModule>(arguments.module(0));
  if (other == nullptr) arguments.fail(0, "a graph executor");
  for (const Param& param : parse_params(arguments.bytes(1), kGivenParams)) {
    const auto here = executor_.argument_index(param.name);
    if (!here) continue;
    const auto there = other->executor_.argument_index(param.name);
    if (!there) {
      throw Error(ErrorKind::kMismatch,
                  "the executor to share parameters with has no input of the name " +
                      in_quotes(param.name));
    }
    executor_.set_argument_zero_copy(*here, other->executor_.argument(*there));
  }
  return {};
}

}  // namespace run_model::rpc
