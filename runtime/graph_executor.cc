#include <run_model/graph_executor.h>

#include <cstring>
#include <string>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/executor_impl.h"

namespace run_model {
namespace {

void check_form(const TensorInfo& expected, const Tensor& given, const char* what) {
  if (given.defined() && given.shape() == expected.shape &&
      same_dtype(given.dtype(), expected.dtype)) {
    return;
  }
  throw Error(
      ErrorKind::kMismatch,
      what + in_quotes(expected.name) + " is " + tensor_form_name(expected.dtype, expected.shape) +
          ", but " +
          (given.defined() ? tensor_form_name(given.dtype(), given.shape()) : "an empty tensor") +
          " was given");
}

void check_buffer_alignment(const TensorInfo& info, const Tensor& tensor) {
  if (tensor.aligned()) return;
  throw Error(ErrorKind::kMismatch,
              "the memory given for " + in_quotes(info.name) + " is not aligned to " +
                  std::to_string(kTensorAlignment) + " bytes",
              "make it with Tensor::empty, or let set_input copy it");
}

void copy(const Tensor& source, const Tensor& target) {
  if (target.nbytes() > 0) std::memmove(target.data(), source.data(), target.nbytes());
}

}  // namespace

GraphExecutor::Impl::Impl(LoadedModel model, const ExecutorOptions& options)
    : model_(std::move(model)),
      threads_(options.threads),
      entries_(model_.graph, model_.plan, model_.params,
               options.plan_memory ? MemoryPlanning::kTight : MemoryPlanning::kCompiler,
               model_.convention),
      calls_(model_, entries_) {
  if (threads_ == nullptr) ThreadPool::shared();  // started now rather than in the first run
  describe_interface();
  if (!options.require_inputs) set_.assign(arguments_.size(), true);
}

void GraphExecutor::Impl::describe_interface() {
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
  output_memory_.resize(outputs_.size());
}

std::size_t GraphExecutor::Impl::argument_entry(std::size_t argument) const {
  return model_.graph.nodes[model_.graph.inputs.at(argument)].first_output;
}

std::size_t GraphExecutor::Impl::input_index(std::string_view name) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].name == name) return i;
  }
  std::string names;
  for (const TensorInfo& input : inputs_)
    names += (names.empty() ? "" : ", ") + in_quotes(input.name);
  throw Error(ErrorKind::kMismatch, "the model has no input " + in_quotes(name) +
                                        ", its inputs are " + (names.empty() ? "none" : names));
}

Tensor GraphExecutor::Impl::input(std::size_t index) {
  const std::size_t argument = argument_of_input(index);
  entries_.move_home(argument_entry(argument));
  set_[argument] = true;
  return entries_.tensor(argument_entry(argument));
}

void GraphExecutor::Impl::set_input(std::size_t index, const Tensor& tensor) {
  check_form(inputs_.at(index), tensor, "input ");
  copy(tensor, input(index));
}

Tensor GraphExecutor::Impl::argument(std::size_t index) {
  const std::size_t entry = argument_entry(index);
  entries_.make_writable(entry);
  set_[index] = true;
  return entries_.tensor(entry);
}

void GraphExecutor::Impl::set_argument(std::size_t index, const Tensor& tensor) {
  check_form(arguments_.at(index), tensor, "input ");
  copy(tensor, argument(index));
}

void GraphExecutor::Impl::set_argument_zero_copy(std::size_t index, const Tensor& tensor) {
  check_form(arguments_.at(index), tensor, "input ");
  check_buffer_alignment(arguments_[index], tensor);
  entries_.move_to(argument_entry(index), tensor);
  set_[index] = true;
}

Tensor GraphExecutor::Impl::output(std::size_t index) const {
  return entries_.tensor(model_.graph.outputs.at(index));
}

void GraphExecutor::Impl::set_output_zero_copy(std::size_t index, const Tensor& tensor) {
  check_form(outputs_.at(index), tensor, "output ");
  check_buffer_alignment(outputs_[index], tensor);
  const std::size_t entry = model_.graph.outputs[index];
  if (placed_by_caller_[model_.plan.alias_of[entry]]) {
    throw Error(ErrorKind::kMismatch, "output " + std::to_string(index) +
                                          " is an input or a parameter itself: nothing writes it");
  }
  for (std::size_t other = 0; other < outputs_.size(); ++other) {
    const void* memory = output_memory_[other];
    if (other == index || memory == nullptr || memory == tensor.data()) continue;
    if (model_.plan.alias_of[model_.graph.outputs[other]] != model_.plan.alias_of[entry]) continue;
    throw Error(ErrorKind::kMismatch,
                "output " + std::to_string(index) + " is the same tensor as output " +
                    std::to_string(other) + ", which is written to other memory already",
                "give both the same memory, or copy one of them");
  }
  entries_.move_to(entry, tensor);
  output_memory_[index] = tensor.data();
}

MemoryAccount GraphExecutor::Impl::memory() const {
  return {model_.params.bytes_in_place, model_.params.bytes_copied, entries_.plan().bytes};
}

void GraphExecutor::Impl::set_threads(std::shared_ptr<ThreadPool> threads) {
  threads_ = std::move(threads);
}

std::shared_ptr<ThreadPool> GraphExecutor::Impl::pool() const {
  return threads_ != nullptr ? threads_ : ThreadPool::shared();
}

void GraphExecutor::Impl::run() {
  check_all_set();
  const std::shared_ptr<ThreadPool> threads = pool();
  CurrentPool use(*threads);
  calls_.run_all();
}

void GraphExecutor::Impl::run_node(std::size_t index) {
  check_all_set();
  const std::shared_ptr<ThreadPool> threads = pool();
  CurrentPool use(*threads);
  calls_.run(index);
}

void GraphExecutor::Impl::check_all_set() const {
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
  impl_->set_argument_zero_copy(impl_->argument_of_input(index), tensor);
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
MemoryAccount GraphExecutor::memory() const { return impl_->memory(); }

}  // namespace run_model
