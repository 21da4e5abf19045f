#include <run_model/debug_executor.h>

#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/devices/device_name.h"
#include "runtime/executor/impl.h"
#include "runtime/loading/param_binding.h"
#include "runtime/loading/params_file.h"

namespace run_model {
namespace {

std::vector<NodeInfo> describe_nodes(const Graph& graph, const EntryStorage& entries) {
  std::vector<std::string> entry_names;
  for (const GraphNode& node : graph.nodes) {
    for (std::size_t i = 0; i < node.num_outputs; ++i) {
      entry_names.push_back(node.num_outputs == 1 ? node.name
                                                  : node.name + ":" + std::to_string(i));
    }
  }
  const auto info = [&](std::size_t entry) {
    return TensorInfo{entry_names[entry], graph.entries[entry].shape, graph.entries[entry].dtype};
  };
  std::vector<NodeInfo> nodes;
  for (std::size_t number = 0; number < graph.nodes.size(); ++number) {
    const GraphNode& node = graph.nodes[number];
    if (node.kind == NodeKind::kInput) continue;
    NodeInfo described{node.name, node.function, {}, {}, entries.plan().joined[number], {}};
    for (std::size_t entry : node.inputs) described.inputs.push_back(info(entry));
    for (std::size_t i = 0; i < node.num_outputs; ++i) {
      described.outputs.push_back(info(node.first_output + i));
    }
    const OpenDevice* device =
        node.num_outputs == 0 ? nullptr : entries.device_of(node.first_output);
    if (device != nullptr) described.device = device_name(device->id());
    nodes.push_back(std::move(described));
  }
  return nodes;
}

}  // namespace

DebugExecutor::DebugExecutor(const ModelFiles& files, const ExecutorOptions& options)
    : GraphExecutor(files, options), nodes_(describe_nodes(graph(), impl().entries())) {}
DebugExecutor::DebugExecutor(std::shared_ptr<Module> library, const ExecutorOptions& options,
                             const std::vector<NamedArray>& arrays)
    : GraphExecutor(std::move(library), options, arrays),
      nodes_(describe_nodes(graph(), impl().entries())) {}
DebugExecutor::DebugExecutor(std::shared_ptr<Module> library, std::string_view graph_json,
                             const ExecutorOptions& options)
    : GraphExecutor(std::move(library), graph_json, options),
      nodes_(describe_nodes(graph(), impl().entries())) {}

const std::vector<NodeInfo>& DebugExecutor::nodes() const {
  if (generation_ != impl().generation()) {
    nodes_ = describe_nodes(graph(), impl().entries());
    generation_ = impl().generation();
  }
  return nodes_;
}

const Graph& DebugExecutor::graph() const { return impl().graph(); }

const std::vector<std::int64_t>& DebugExecutor::output_tuples() const {
  return impl().output_tuples();
}

void DebugExecutor::run_node(std::size_t index) { impl().run_node(index); }

std::optional<double> DebugExecutor::run_node_timed(std::size_t index) {
  return impl().run_node_timed(index);
}

Tensor DebugExecutor::node_output(std::size_t index, std::size_t output) const {
  const GraphNode& node = graph().nodes[impl().calls().in_graph().at(index)];
  if (output >= node.num_outputs) {
    throw Error(ErrorKind::kUsage, "node " + in_quotes(node.name) + " has " +
                                       std::to_string(node.num_outputs) + " outputs");
  }
  return impl().entries().tensor(node.first_output + output);
}

const std::vector<TensorInfo>& DebugExecutor::arguments() const { return impl().arguments(); }

std::optional<std::size_t> DebugExecutor::argument_index(std::string_view name) const {
  for (std::size_t i = 0; i < arguments().size(); ++i) {
    if (arguments()[i].name == name) return i;
  }
  return std::nullopt;
}

Tensor DebugExecutor::argument(std::size_t index) { return impl().argument(index); }

void DebugExecutor::set_argument(std::size_t index, const Tensor& tensor) {
  impl().set_argument(index, tensor);
}

void DebugExecutor::set_argument_zero_copy(std::size_t index, const Tensor& tensor) {
  impl().set_argument_zero_copy(index, tensor);
}

void DebugExecutor::load_params(std::span<const std::byte> bytes, const std::string& source) {
  std::vector<std::pair<std::size_t, Param>> known;
  for (Param& param : parse_params(bytes, source)) {
    const std::optional<std::size_t> index = argument_index(param.name);
    if (!index) continue;
    const TensorInfo& expected = arguments()[*index];
    check_form(param, expected.shape, expected.dtype, source);
    known.emplace_back(*index, std::move(param));
  }
  for (const auto& [index, param] : known) {
    if (param.data.empty()) {
      argument(index);
      continue;
    }
    auto* data = const_cast<std::byte*>(param.data.data());
    set_argument(index, Tensor::view(data, param.shape, param.dtype, nullptr));
  }
}

}  // namespace run_model
