#include "runtime/graph_executor.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "runtime/current_pool.h"
#include "runtime/error.h"
#include "runtime/last_error.h"
#include "runtime/memory_plan.h"
#include "runtime/model_loader.h"
#include "runtime/quoted.h"

namespace run_model {
namespace {

// In bytes; more than a 32-bit program can address on many boards.
std::uint64_t physical_memory() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// Zeroed pages that are only taken from the system when they are written to first.
std::shared_ptr<char> allocate_pages(std::size_t bytes) {
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes > physical_memory()) {
    throw Error(ErrorCode::kIncompatible,
                "the model's tensors need " + std::to_string(bytes) + " bytes of memory, this machine has " +
                    std::to_string(physical_memory()));
  }
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw Error(ErrorCode::kIncompatible,
                "the system refused " + std::to_string(bytes) + " bytes of memory for the model's tensors");
  }
  return {static_cast<char*>(data), [bytes](char* pages) { munmap(pages, bytes); }};
}

// Bytes of `data` from all over it, enough to tell whether a function that should leave it as it is
// moves or changes anything: blocks of kSampleBlock bytes at kSamples places, all of it where it is short.
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
  Impl(const ModelFiles& files, const ExecutorOptions& options)
      : model_(load_model(files, options.on_loaded)),
        threads_(options.threads != nullptr ? options.threads : ThreadPool::shared()) {
    place_entries(options.plan_memory ? MemoryPlanning::kTight : MemoryPlanning::kCompiler);
    describe_interface();
    prepare_calls(files);
  }

  std::size_t input_index(std::string_view name) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i].name == name) return i;
    }
    std::string names;
    for (const TensorInfo& input : inputs_) names += (names.empty() ? "" : ", ") + in_quotes(input.name);
    throw Error(ErrorCode::kMismatch, "the model has no input " + in_quotes(name) + ", its inputs are " +
                                          (names.empty() ? "none" : names));
  }

  Tensor input(std::size_t index) {
    std::size_t entry = input_entries_.at(index);
    rebind(entry, own_data_[entry], arena_);
    set_[index] = true;
    return entry_tensor(entry);
  }

  void set_input(std::size_t index, const Tensor& tensor) {
    check_form(inputs_.at(index), tensor, "input ");
    Tensor target = input(index);
    if (target.nbytes() > 0) std::memmove(target.data(), tensor.data(), target.nbytes());
  }

  void set_input_zero_copy(std::size_t index, const Tensor& tensor) {
    check_form(inputs_.at(index), tensor, "input ");
    check_alignment(inputs_[index], tensor);
    rebind(input_entries_[index], tensor.data(), std::make_shared<Tensor>(tensor));
    set_[index] = true;
  }

  void set_output_zero_copy(std::size_t index, const Tensor& tensor) {
    check_form(outputs_.at(index), tensor, "output ");
    check_alignment(outputs_[index], tensor);
    std::size_t entry = model_.graph.outputs[index];
    if (placed_by_caller_[model_.plan.alias_of[entry]]) {
      throw Error(ErrorCode::kMismatch, "output " + std::to_string(index) +
                                            " is an input or a parameter itself: nothing writes it");
    }
    rebind(entry, tensor.data(), std::make_shared<Tensor>(tensor));
  }

  Tensor output(std::size_t index) const { return entry_tensor(model_.graph.outputs.at(index)); }

  void set_threads(std::shared_ptr<ThreadPool> threads) {
    threads_ = threads != nullptr ? std::move(threads) : ThreadPool::shared();
  }

  void run() {
    check_all_set();
    CurrentPool use(*threads_);
    for (Call& call : calls_) execute(call);
  }

  void run_node(std::size_t index) {
    check_all_set();
    CurrentPool use(*threads_);
    std::size_t call = call_of_node_.at(index);
    if (call != kNoCall) execute(calls_[call]);
  }

  Tensor node_output(std::size_t index, std::size_t output) const {
    const GraphNode& node = model_.graph.nodes[node_numbers_.at(index)];
    if (output >= node.num_outputs) {
      throw Error(ErrorCode::kUsage, "node " + in_quotes(node.name) + " has " +
                                         std::to_string(node.num_outputs) + " outputs");
    }
    return entry_tensor(node.first_output + output);
  }

  MemoryAccount memory() const {
    return {model_.params.bytes_in_place, model_.params.bytes_copied, memory_.bytes};
  }

  const Graph& graph() const { return model_.graph; }
  const std::vector<TensorInfo>& inputs() const { return inputs_; }
  const std::vector<TensorInfo>& outputs() const { return outputs_; }
  const std::vector<NodeInfo>& nodes() const { return nodes_; }

 private:
  // A node that does something when it is run.
  struct Call {
    PackedFunction function = nullptr;  // null: copy the first argument to the second
    std::size_t node = 0;
    std::size_t first_argument = 0;  // in arguments_ and type_codes_
    int num_arguments = 0;
    bool joined = false;   // nothing to do: the inputs lie where the function would copy them to
    bool checked = false;  // the function was seen to leave them there
  };
  static constexpr std::size_t kNoCall = static_cast<std::size_t>(-1);

  // Gives every entry its address: parameters theirs, the others a place in one arena.
  void place_entries(MemoryPlanning planning) {
    const Graph& graph = model_.graph;
    std::vector<bool> is_param(graph.entries.size(), false);
    for (const BoundParam& param : model_.params.params) is_param[param.entry] = true;
    placed_by_caller_ = is_param;
    memory_ = plan_memory(graph, model_.plan, is_param, planning);
    arena_ = allocate_pages(memory_.bytes);
    entries_.resize(graph.entries.size());
    owners_.assign(graph.entries.size(), arena_);
    own_data_.resize(graph.entries.size());
    flat_size_.resize(graph.entries.size());
    for (std::size_t i = 0; i < graph.entries.size(); ++i) {
      const GraphEntry& entry = graph.entries[i];
      const bool placed = memory_.offset[i] != MemoryPlan::kNotPlaced;
      own_data_[i] = placed ? arena_.get() + memory_.offset[i] : nullptr;
      DLTensor& tensor = entries_[i];
      tensor.data = own_data_[i];
      tensor.device = {kDLCPU, 0};
      tensor.ndim = static_cast<int>(entry.shape.size());
      tensor.dtype = entry.dtype;
      tensor.shape = const_cast<std::int64_t*>(entry.shape.data());
    }
    for (const BoundParam& param : model_.params.params) {
      rebind(param.entry, const_cast<void*>(param.data), std::const_pointer_cast<void>(param.owner));
    }
  }

  void describe_interface() {
    const Graph& graph = model_.graph;
    for (std::size_t number : graph.inputs) {
      std::size_t entry = graph.nodes[number].first_output;
      if (placed_by_caller_[entry]) continue;
      inputs_.push_back({graph.nodes[number].name, graph.entries[entry].shape, graph.entries[entry].dtype});
      input_entries_.push_back(entry);
    }
    for (std::size_t entry : input_entries_) placed_by_caller_[entry] = true;
    set_.assign(inputs_.size(), false);
    for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
      const GraphEntry& entry = graph.entries[graph.outputs[i]];
      outputs_.push_back({"output_" + std::to_string(i), entry.shape, entry.dtype});
    }
  }

  void prepare_calls(const ModelFiles& files) {
    const Graph& graph = model_.graph;
    std::vector<std::string> entry_names;
    for (const GraphNode& node : graph.nodes) {
      for (std::size_t i = 0; i < node.num_outputs; ++i) {
        entry_names.push_back(node.num_outputs == 1 ? node.name : node.name + ":" + std::to_string(i));
      }
    }
    auto info = [&](std::size_t entry) {
      return TensorInfo{entry_names[entry], graph.entries[entry].shape, graph.entries[entry].dtype};
    };
    for (std::size_t number = 0; number < graph.nodes.size(); ++number) {
      const GraphNode& node = graph.nodes[number];
      if (node.kind == NodeKind::kInput) continue;
      NodeInfo described{node.name, node.function, {}, {}, memory_.joined[number]};
      for (std::size_t entry : node.inputs) described.inputs.push_back(info(entry));
      for (std::size_t i = 0; i < node.num_outputs; ++i) {
        described.outputs.push_back(info(node.first_output + i));
      }
      nodes_.push_back(std::move(described));
      node_numbers_.push_back(number);
      bool nothing_to_do = node.kind == NodeKind::kNop &&
                           model_.plan.alias_of[node.first_output] != node.first_output;
      call_of_node_.push_back(nothing_to_do ? kNoCall : calls_.size());
      if (!nothing_to_do) calls_.push_back(prepare_call(number, files));
    }
  }

  Call prepare_call(std::size_t number, const ModelFiles& files) {
    const GraphNode& node = model_.graph.nodes[number];
    Call call;
    call.node = number;
    call.joined = memory_.joined[number];
    call.first_argument = arguments_.size();
    call.num_arguments = static_cast<int>(node.inputs.size() + node.num_outputs);
    for (std::size_t entry : node.inputs) add_argument(entry, node.flatten);
    for (std::size_t i = 0; i < node.num_outputs; ++i) {
      add_argument(node.first_output + i, node.flatten);
    }
    if (node.kind == NodeKind::kFunction) {
      call.function = model_.module->find(node.function);
      if (call.function == nullptr) {
        throw Error(ErrorCode::kMismatch,
                    "the graph calls the function " + in_quotes(node.function) + ", which library " +
                        path_in_quotes(files.library) + " does not have",
                    "check that the library and the graph come from the same compilation");
      }
    }
    return call;
  }

  void add_argument(std::size_t entry, bool flatten) {
    DLTensor& tensor = entries_[entry];
    if (flatten) {
      flat_size_[entry] = element_count(model_.graph.entries[entry].shape);
      tensor.ndim = 1;
      tensor.shape = &flat_size_[entry];
    }
    PackedValue value{};
    value.v_handle = &tensor;
    arguments_.push_back(value);
    type_codes_.push_back(kTypeTensorHandle);
  }

  void execute(Call& call) {
    if (call.joined) {
      if (!call.checked) check_join(call);
      return;
    }
    execute_now(call);
  }

  // What a function does is known by its name alone. It is run once on tensors that lie where it would
  // copy them to, which has to change nothing.
  void check_join(Call& call) {
    const GraphNode& node = model_.graph.nodes[call.node];
    const char* data = static_cast<const char*>(entries_[node.first_output].data);
    const std::size_t bytes = model_.graph.entries[node.first_output].bytes;
    const std::vector<char> before = sample(data, bytes);
    execute_now(call);
    if (sample(data, bytes) != before) {
      throw Error(ErrorCode::kModel,
                  "node " + in_quotes(node.name) + ": the function " + in_quotes(node.function) +
                      " does more than its name says, which is to concatenate",
                  "run with the compiler's memory plan (--no-plan-memory)");
    }
    call.checked = true;
  }

  void execute_now(const Call& call) {
    PackedValue* arguments = arguments_.data() + call.first_argument;
    if (call.function == nullptr) {
      std::size_t entry = model_.graph.nodes[call.node].first_output;
      std::memmove(entries_[entry].data, static_cast<DLTensor*>(arguments[0].v_handle)->data,
                   model_.graph.entries[entry].bytes);
      return;
    }
    PackedValue result{};
    int result_type_code = kTypeNull;
    int status = call.function(arguments, type_codes_.data() + call.first_argument,
                               call.num_arguments, &result, &result_type_code, nullptr);
    if (status != 0) [[unlikely]] throw_failure(call);
  }

  [[noreturn]] void throw_failure(const Call& call) const {
    const GraphNode& node = model_.graph.nodes[call.node];
    throw Error(ErrorCode::kModel, "node " + in_quotes(node.name) + " (function " +
                                       in_quotes(node.function) + ") failed: " + last_packed_error());
  }

  void check_all_set() const {
    std::string missing;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (set_[i]) continue;
      missing += (missing.empty() ? "" : ", ") + in_quotes(inputs_[i].name) + " (" +
                 tensor_form_name(inputs_[i].dtype, inputs_[i].shape) + ")";
    }
    if (missing.empty()) return;
    throw Error(ErrorCode::kMismatch, "these inputs of the model were never set: " + missing,
                "set them; if one of them is a parameter, the parameter file does not belong to "
                "this graph");
  }

  static void check_form(const TensorInfo& expected, const Tensor& given, const char* what) {
    if (given.defined() && given.shape() == expected.shape && same_dtype(given.dtype(), expected.dtype)) {
      return;
    }
    throw Error(ErrorCode::kMismatch,
                what + in_quotes(expected.name) + " is " +
                    tensor_form_name(expected.dtype, expected.shape) + ", but " +
                    (given.defined() ? tensor_form_name(given.dtype(), given.shape())
                                     : "an empty tensor") +
                    " was given");
  }

  static void check_alignment(const TensorInfo& info, const Tensor& tensor) {
    if (tensor.aligned()) return;
    throw Error(ErrorCode::kMismatch,
                "the memory given for " + in_quotes(info.name) + " is not aligned to " +
                    std::to_string(kTensorAlignment) + " bytes",
                "make it with Tensor::empty, or let set_input copy it");
  }

  // Moves an entry, and all that lies in the same memory with it, to another address.
  void rebind(std::size_t entry, void* data, const std::shared_ptr<void>& owner) {
    const std::size_t root = memory_.root[entry];
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (memory_.root[i] != root) continue;
      entries_[i].data = static_cast<char*>(data) + (memory_.offset[i] - memory_.offset[entry]);
      owners_[i] = owner;
    }
  }

  Tensor entry_tensor(std::size_t entry) const {
    const GraphEntry& description = model_.graph.entries[entry];
    return Tensor::view(entries_[entry].data, description.shape, description.dtype, owners_[entry]);
  }

  LoadedModel model_;
  std::shared_ptr<ThreadPool> threads_;

  std::shared_ptr<char> arena_;
  MemoryPlan memory_;
  std::vector<DLTensor> entries_;
  std::vector<std::shared_ptr<void>> owners_;  // of each entry's memory
  std::vector<void*> own_data_;                // each entry's place in the arena
  std::vector<std::int64_t> flat_size_;
  std::vector<bool> placed_by_caller_;  // entries that are parameters or inputs

  std::vector<TensorInfo> inputs_;
  std::vector<std::size_t> input_entries_;
  std::vector<bool> set_;
  std::vector<TensorInfo> outputs_;

  std::vector<NodeInfo> nodes_;
  std::vector<std::size_t> node_numbers_;  // in the graph
  std::vector<std::size_t> call_of_node_;
  std::vector<Call> calls_;
  std::vector<PackedValue> arguments_;
  std::vector<int> type_codes_;
};

GraphExecutor::GraphExecutor(const ModelFiles& files, const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(files, options)) {}

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
