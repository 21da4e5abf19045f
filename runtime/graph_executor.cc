#include <run_model/graph_executor.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/current_pool.h"
#include "runtime/entry_storage.h"
#include "runtime/last_error.h"
#include "runtime/model_loader.h"

namespace run_model {
namespace {

// Bytes of `data` from all over it, enough to tell whether a function that should leave it as it is
// moves or changes anything: blocks of kSampleBlock bytes at kSamples places, all of it where it is
// short.
std::vector<char> sample(const char* data, std::size_t bytes) {
  constexpr std::size_t kSampleBlock = 64;
  constexpr std::size_t kSamples = 256;
  if (bytes <= kSampleBlock * kSamples) return {data, data + bytes};
  std::vector<char> samples;
  samples.reserve(kSampleBlock * kSamples);
  const std::size_t last = bytes - kSampleBlock;
  for (std::size_t i = 0; i < kSamples; ++i) {
    const char* block = data + last / (kSamples - 1) * i;
    samples.insert(samples.end(), block, block + kSampleBlock);
  }
  return samples;
}

}  // namespace

class GraphExecutor::Impl {
 public:
  Impl(LoadedModel model, const ExecutorOptions& options)
      : model_(std::move(model)),
        threads_(options.threads),
        entries_(model_.graph, model_.plan, model_.params,
                 options.plan_memory ? MemoryPlanning::kTight : MemoryPlanning::kCompiler) {
    if (threads_ == nullptr) ThreadPool::shared();  // started now rather than in the first run
    describe_interface();
    if (!options.require_inputs) set_.assign(arguments_.size(), true);
    prepare_calls();
  }

  std::size_t input_index(std::string_view name) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].name == name) return i;
    }
    std::string names;
    for (const TensorInfo& input : inputs_)
      names += (names.empty() ? "" : ", ") + in_quotes(input.name);
    throw Error(ErrorKind::kMismatch, "the model has no input " + in_quotes(name) +
                                          ", its inputs are " + (names.empty() ? "none" : names));
  }

  std::optional<std::size_t> argument_index(std::string_view name) const {
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (arguments_[i].name == name) return i;
    }
    return std::nullopt;
  }

  Tensor input(std::size_t index) {
    const std::size_t argument = input_arguments_.at(index);
    entries_.move_home(argument_entry(argument));
    set_[argument] = true;
    return entries_.tensor(argument_entry(argument));
  }

  void set_input(std::size_t index, const Tensor& tensor) {
    check_form(inputs_.at(index), tensor, "input ");
    Tensor target = input(index);
    if (target.nbytes() > 0) std::memmove(target.data(), tensor.data(), target.nbytes());
  }

  void set_input_zero_copy(std::size_t index, const Tensor& tensor) {
    set_argument_zero_copy(input_arguments_.at(index), tensor);
  }

  Tensor argument(std::size_t index) {
    const std::size_t entry = argument_entry(index);
    entries_.make_writable(entry);
    set_[index] = true;
    return entries_.tensor(entry);
  }

  void set_argument(std::size_t index, const Tensor& tensor) {
    check_form(arguments_.at(index), tensor, "input ");
    Tensor target = argument(index);
    if (target.nbytes() > 0) std::memmove(target.data(), tensor.data(), target.nbytes());
  }

  void set_argument_zero_copy(std::size_t index, const Tensor& tensor) {
    check_form(arguments_.at(index), tensor, "input ");
    check_alignment(arguments_[index], tensor);
    entries_.move_to(argument_entry(index), tensor);
    set_[index] = true;
  }

  void set_output_zero_copy(std::size_t index, const Tensor& tensor) {
    check_form(outputs_.at(index), tensor, "output ");
    check_alignment(outputs_[index], tensor);
    std::size_t entry = model_.graph.outputs[index];
    if (placed_by_caller_[model_.plan.alias_of[entry]]) {
      throw Error(ErrorKind::kMismatch,
                  "output " + std::to_string(index) +
                      " is an input or a parameter itself: nothing writes it");
    }
    entries_.move_to(entry, tensor);
  }

  Tensor output(std::size_t index) const { return entries_.tensor(model_.graph.outputs.at(index)); }

  void set_threads(std::shared_ptr<ThreadPool> threads) { threads_ = std::move(threads); }

  void run() {
    check_all_set();
    const std::shared_ptr<ThreadPool> threads = pool();
    CurrentPool use(*threads);
    for (Call& call : calls_) execute(call);
  }

  void run_node(std::size_t index) {
    check_all_set();
    const std::shared_ptr<ThreadPool> threads = pool();
    CurrentPool use(*threads);
    std::size_t call = call_of_node_.at(index);
    if (call != kNoCall) execute(calls_[call]);
  }

  Tensor node_output(std::size_t index, std::size_t output) const {
    const GraphNode& node = model_.graph.nodes[node_numbers_.at(index)];
    if (output >= node.num_outputs) {
      throw Error(ErrorKind::kUsage, "node " + in_quotes(node.name) + " has " +
                                         std::to_string(node.num_outputs) + " outputs");
    }
    return entries_.tensor(node.first_output + output);
  }

  MemoryAccount memory() const {
    return {model_.params.bytes_in_place, model_.params.bytes_copied, entries_.plan().bytes};
  }

  const Graph& graph() const { return model_.graph; }
  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  const std::vector<TensorInfo>& arguments() const { return arguments_; }
  const std::vector<NodeInfo>& nodes() const { return nodes_; }

 private:
  // A node that does something when it is run.
  struct Call {
    PackedFunction function = nullptr;  // null: copy the first argument to the second
    std::size_t node = 0;
    std::size_t first_argument = 0;  // in values_ and type_codes_
    int num_arguments = 0;
    bool joined = false;   // nothing to do: the inputs lie where the function would copy them to
    bool checked = false;  // the function was seen to leave them there
  };
  static constexpr std::size_t kNoCall = static_cast<std::size_t>(-1);

  std::shared_ptr<ThreadPool> pool() const {
    return threads_ != nullptr ? threads_ : ThreadPool::shared();
  }

  std::size_t argument_entry(std::size_t argument) const {
    return model_.graph.nodes[model_.graph.inputs.at(argument)].first_output;
  }

  void describe_interface() {
    const Graph& graph = model_.graph;
    std::vector<bool> is_param(graph.entries.size(), false);
    for (const BoundParam& param : model_.params.params) is_param[param.entry] = true;
    placed_by_caller_ = is_param;
    for (std::size_t number : graph.inputs) {
      const std::size_t entry = graph.nodes[number].first_output;
      arguments_.push_back(
          {graph.nodes[number].name, graph.entries[entry].shape, graph.entries[entry].dtype});
      set_.push_back(is_param[entry]);
      placed_by_caller_[entry] = true;
      if (is_param[entry]) continue;
      inputs_.push_back(arguments_.back());
      input_arguments_.push_back(arguments_.size() - 1);
    }
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      const GraphEntry& entry = graph.entries[graph.outputs[i]];
      outputs_.push_back({"output_" + std::to_string(i), entry.shape, entry.dtype});
    }
  }

  void prepare_calls() {
    const Graph& graph = model_.graph;
    std::vector<std::string> entry_names;
    for (const GraphNode& node : graph.nodes) {
      for (std::size_t i = 0; i < node.num_outputs; ++i) {
        entry_names.push_back(node.num_outputs == 1 ? node.name
                                                    : node.name + ":" + std::to_string(i));
      }
    }
    auto info = [&](std::size_t entry) {
      return TensorInfo{entry_names[entry], graph.entries[entry].shape, graph.entries[entry].dtype};
    };
    for (std::size_t number = 0; number < graph.nodes.size(); ++number) {
      const GraphNode& node = graph.nodes[number];
      if (node.kind == NodeKind::kInput) continue;
      NodeInfo described{node.name, node.function, {}, {}, entries_.plan().joined[number]};
      for (std::size_t entry : node.inputs) described.inputs.push_back(info(entry));
      for (std::size_t i = 0; i < node.num_outputs; ++i) {
        described.outputs.push_back(info(node.first_output + i));
      }
      nodes_.push_back(std::move(described));
      node_numbers_.push_back(number);
      bool nothing_to_do = node.kind == NodeKind::kNop &&
                           model_.plan.alias_of[node.first_output] != node.first_output;
      call_of_node_.push_back(nothing_to_do ? kNoCall : calls_.size());
      if (!nothing_to_do) calls_.push_back(prepare_call(number));
    }
  }

  Call prepare_call(std::size_t number) {
    const GraphNode& node = model_.graph.nodes[number];
    Call call;
    call.node = number;
    call.joined = entries_.plan().joined[number];
    call.first_argument = values_.size();
    call.num_arguments = static_cast<int>(node.inputs.size() + node.num_outputs);
    for (std::size_t entry : node.inputs) add_argument(entry, node.flatten);
    for (std::size_t i = 0; i < node.num_outputs; ++i) {
      add_argument(node.first_output + i, node.flatten);
    }
    if (node.kind == NodeKind::kFunction) {
      call.function = model_.module->find(node.function);
      if (call.function == nullptr) {
        throw Error(ErrorKind::kMismatch,
                    "the graph calls the function " + in_quotes(node.function) +
                        ", which library " + path_in_quotes(model_.module->path()) +
                        " does not have",
                    "check that the library and the graph come from the same compilation");
      }
    }
    return call;
  }

  void add_argument(std::size_t entry, bool flatten) {
    PackedValue value{};
    value.v_handle = entries_.argument(entry, flatten);
    values_.push_back(value);
    type_codes_.push_back(kTypeTensorHandle);
  }

  void execute(Call& call) {
    if (call.joined) {
      if (!call.checked) check_join(call);
      return;
    }
    execute_now(call);
  }

  // What a function does is known by its name alone. It is run once on tensors that lie where it
  // would copy them to, which has to change nothing.
  void check_join(Call& call) {
    const GraphNode& node = model_.graph.nodes[call.node];
    const char* data = static_cast<const char*>(entries_.data(node.first_output));
    const std::size_t bytes = model_.graph.entries[node.first_output].bytes;
    const std::vector<char> before = sample(data, bytes);
    execute_now(call);
    if (sample(data, bytes) != before) {
      throw Error(ErrorKind::kModel,
                  "node " + in_quotes(node.name) + ": the function " + in_quotes(node.function) +
                      " does more than its name says, which is to concatenate",
                  "run with the compiler's memory plan (--no-plan-memory)");
    }
    call.checked = true;
  }

  void execute_now(const Call& call) {
    PackedValue* arguments = values_.data() + call.first_argument;
    if (call.function == nullptr) {
      std::size_t entry = model_.graph.nodes[call.node].first_output;
      std::memmove(entries_.data(entry), static_cast<DLTensor*>(arguments[0].v_handle)->data,
                   model_.graph.entries[entry].bytes);
      return;
    }
    PackedValue result{};
    int result_type_code = kTypeNull;
    int status = call.function(arguments, type_codes_.data() + call.first_argument,
                               call.num_arguments, &result, &result_type_code, nullptr);
    if (status != 0) [[unlikely]]
      throw_failure(call);
  }

  [[noreturn]] void throw_failure(const Call& call) const {
    const GraphNode& node = model_.graph.nodes[call.node];
    throw Error(ErrorKind::kModel, "node " + in_quotes(node.name) + " (function " +
                                       in_quotes(node.function) +
                                       ") failed: " + last_packed_error());
  }

  void check_all_set() const {
    std::string missing;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (set_[i]) continue;
      missing += (missing.empty() ? "" : ", ") + in_quotes(arguments_[i].name) + " (" +
                 tensor_form_name(arguments_[i].dtype, arguments_[i].shape) + ")";
    }
    if (missing.empty()) return;
    throw Error(ErrorKind::kMismatch, "these inputs of the model were never set: " + missing,
                "set them; if one of them is a parameter, the parameter file does not belong to "
                "this graph");
  }

  static void check_form(const TensorInfo& expected, const Tensor& given, const char* what) {
    if (given.defined() && given.shape() == expected.shape &&
        same_dtype(given.dtype(), expected.dtype)) {
      return;
    }
    throw Error(
        ErrorKind::kMismatch,
        what + in_quotes(expected.name) + " is " +
            tensor_form_name(expected.dtype, expected.shape) + ", but " +
            (given.defined() ? tensor_form_name(given.dtype(), given.shape()) : "an empty tensor") +
            " was given");
  }

  static void check_alignment(const TensorInfo& info, const Tensor& tensor) {
    if (tensor.aligned()) return;
    throw Error(ErrorKind::kMismatch,
                "the memory given for " + in_quotes(info.name) + " is not aligned to " +
                    std::to_string(kTensorAlignment) + " bytes",
                "make it with Tensor::empty, or let set_input copy it");
  }

  LoadedModel model_;
  std::shared_ptr<ThreadPool> threads_;  // null: the process-wide one
  EntryStorage entries_;

  std::vector<TensorInfo> arguments_;
  std::vector<bool> set_;  // by argument
  std::vector<TensorInfo> inputs_;
  std::vector<std::size_t> input_arguments_;
  std::vector<TensorInfo> outputs_;
  std::vector<bool> placed_by_caller_;  // entries that are parameters or inputs

  std::vector<NodeInfo> nodes_;
  std::vector<std::size_t> node_numbers_;  // in the graph
  std::vector<std::size_t> call_of_node_;
  std::vector<Call> calls_;
  std::vector<PackedValue> values_;
  std::vector<int> type_codes_;
};

GraphExecutor::GraphExecutor(const ModelFiles& files, const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(load_model(files, options.on_loaded), options)) {}
GraphExecutor::GraphExecutor(std::shared_ptr<Module> library, const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(load_model(std::move(library), options.on_loaded), options)) {}
GraphExecutor::GraphExecutor(std::shared_ptr<Module> library, std::string_view graph_json,
                             const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(load_model(std::move(library), graph_json, options.on_loaded),
                                   options)) {}

GraphExecutor::~GraphExecutor() = default;
GraphExecutor::GraphExecutor(GraphExecutor&&) noexcept = default;
GraphExecutor& GraphExecutor::operator=(GraphExecutor&&) noexcept = default;

const std::vector<TensorInfo>& GraphExecutor::inputs() const { return impl_->inputs(); }
const std::vector<TensorInfo>& GraphExecutor::outputs() const { return impl_->outputs(); }
std::size_t GraphExecutor::input_index(std::string_view name) const {
  return impl_->input_index(name);
}
void GraphExecutor::set_input(std::size_t index, const Tensor& tensor) {
  impl_->set_input(index, tensor);
}
void GraphExecutor::set_input(std::string_view name, const Tensor& tensor) {
  impl_->set_input(impl_->input_index(name), tensor);
}
void GraphExecutor::set_input_zero_copy(std::size_t index, const Tensor& tensor) {
  impl_->set_input_zero_copy(index, tensor);
}
Tensor GraphExecutor::input(std::size_t index) { return impl_->input(index); }
const std::vector<TensorInfo>& GraphExecutor::arguments() const { return impl_->arguments(); }
std::optional<std::size_t> GraphExecutor::argument_index(std::string_view name) const {
  return impl_->argument_index(name);
}
Tensor GraphExecutor::argument(std::size_t index) { return impl_->argument(index); }
void GraphExecutor::set_argument(std::size_t index, const Tensor& tensor) {
  impl_->set_argument(index, tensor);
}
void GraphExecutor::set_argument_zero_copy(std::size_t index, const Tensor& tensor) {
  impl_->set_argument_zero_copy(index, tensor);
}
void GraphExecutor::set_output_zero_copy(std::size_t index, const Tensor& tensor) {
  impl_->set_output_zero_copy(index, tensor);
}
Tensor GraphExecutor::output(std::size_t index) const { return impl_->output(index); }
void GraphExecutor::set_threads(std::shared_ptr<ThreadPool> threads) {
  impl_->set_threads(std::move(threads));
}
void GraphExecutor::run() { impl_->run(); }
const std::vector<NodeInfo>& GraphExecutor::nodes() const { return impl_->nodes(); }
void GraphExecutor::run_node(std::size_t index) { impl_->run_node(index); }
Tensor GraphExecutor::node_output(std::size_t index, std::size_t output) const {
  return impl_->node_output(index, output);
}
MemoryAccount GraphExecutor::memory() const { return impl_->memory(); }
const Graph& GraphExecutor::graph() const { return impl_->graph(); }

}  // namespace run_model
