#include <run_model/graph_executor.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/executor/impl.h"
#include "runtime/relax/interpreter.h"
#include "runtime/relax/relax_source.h"

namespace run_model {

void copy_numbers(const Tensor& source, const Tensor& target) {
  if (target.nbytes() > 0) std::memmove(target.data(), source.data(), target.nbytes());
}

GraphExecutor::Impl::Impl(LoadedModel model, const ExecutorOptions& options)
    : planning_(options.plan_memory ? MemoryPlanning::kTight : MemoryPlanning::kCompiler),
      threads_(options.threads),
      require_inputs_(options.require_inputs) {
  prepared_.push_back(std::make_unique<Prepared>(std::move(model), planning_));
  now_ = prepared_.back().get();
  if (threads_ == nullptr) ThreadPool::shared();  // started now rather than in the first run
  if (now_->model.relax != nullptr) {
    shapes_ = now_->shapes = now_->model.relax->least_shapes();
    waiting_.resize(shapes_.size());
    in_place_.resize(shapes_.size());
  }
  describe_interface();
}

const std::vector<TensorInfo>& GraphExecutor::Impl::outputs() {
  if (now_->model.interpreter != nullptr && outputs_.empty()) run_calls();
  return outputs_;
}

const std::vector<std::int64_t>& GraphExecutor::Impl::output_tuples() const {
  const LoadedModel& model = now_->model;
  return model.interpreter != nullptr ? model.interpreter->output_tuples()
                                      : model.graph.output_tuples;
}

std::size_t GraphExecutor::Impl::argument_entry(std::size_t argument) const {
  return now_->model.graph.nodes[now_->model.graph.inputs.at(argument)].first_output;
}

std::size_t GraphExecutor::Impl::input_index(std::string_view name) const {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].name == name) return i;
  }
  const std::string names =
      comma_list(inputs_, [](const TensorInfo& input) { return in_quotes(input.name); });
  throw Error(ErrorKind::kMismatch, "the model has no input " + in_quotes(name) +
                                        ", its inputs are " + (names.empty() ? "none" : names));
}

Tensor GraphExecutor::Impl::input(std::size_t index) {
  const std::size_t argument = argument_of_input(index);
  if (const std::size_t entry = argument_entry(argument); on_device(entry)) {
    bring_home(entry);
    set_[argument] = true;
    return now_->sides.to_write(entry, true);
  }
  now_->entries.move_home(argument_entry(argument));
  if (argument < in_place_.size()) in_place_[argument] = {};
  set_[argument] = true;
  return now_->entries.tensor(argument_entry(argument));
}

void GraphExecutor::Impl::set_input(std::size_t index, const Tensor& tensor) {
  const std::size_t argument = argument_of_input(index);
  if (!takes_shape(argument, tensor, false)) return;
  const std::size_t entry = argument_entry(argument);
  set_[argument] = true;
  if (on_device(entry)) bring_home(entry);
  copy_numbers(tensor, on_device(entry) ? now_->sides.to_write(entry, false) : input(index));
}

Tensor GraphExecutor::Impl::argument(std::size_t index) {
  const std::size_t entry = argument_entry(index);
  set_[index] = true;
  if (on_device(entry)) return now_->sides.to_read_and_write(entry);
  now_->entries.make_writable(entry);
  return now_->entries.tensor(entry);
}

void GraphExecutor::Impl::set_argument(std::size_t index, const Tensor& tensor) {
  if (!takes_shape(index, tensor, false)) return;
  const std::size_t entry = argument_entry(index);
  set_[index] = true;
  if (on_device(entry)) bring_home(entry);
  copy_numbers(tensor, on_device(entry) ? now_->sides.to_write(entry, false) : argument(index));
}

Tensor GraphExecutor::Impl::output(std::size_t index) {
  if (failure_ != nullptr) std::rethrow_exception(failure_);
  if (now_->model.failure != nullptr) std::rethrow_exception(now_->model.failure);
  if (now_->model.interpreter != nullptr) return now_->model.interpreter->outputs().at(index);
  const Graph& graph = now_->model.graph;
  Tensor tensor = tensor_to_read(graph.outputs.at(index));
  if (index >= graph.row_counts.size() || !graph.row_counts[index]) return tensor;
  const RowCount& rows = *graph.row_counts[index];
  std::int64_t count = 0;
  std::memcpy(&count, tensor_to_read(rows.entry).data(), sizeof(count));
  std::vector<std::int64_t> shape = tensor.shape();
  if (count < 0 || count > shape[rows.axis]) {
    throw Error(ErrorKind::kModel, "output " + std::to_string(index) + " is said to have " +
                                       std::to_string(count) + " rows of the " +
                                       std::to_string(shape[rows.axis]) + " that it can have");
  }
  shape[rows.axis] = count;
  std::size_t lists = 1;
  for (std::size_t i = 0; i < rows.axis; ++i) lists *= static_cast<std::size_t>(shape[i]);
  if (lists <= 1) {
    return Tensor::view(tensor.data(), std::move(shape), tensor.dtype(),
                        std::make_shared<Tensor>(tensor));
  }
  Tensor result = Tensor::empty(std::move(shape), tensor.dtype());
  const std::size_t bytes = result.nbytes() / lists;
  const std::size_t stride = tensor.nbytes() / lists;
  for (std::size_t i = 0; i < lists; ++i) {
    std::memcpy(static_cast<std::byte*>(result.data()) + i * bytes,
                static_cast<const std::byte*>(tensor.data()) + i * stride, bytes);
  }
  return result;
}

Tensor GraphExecutor::Impl::tensor_to_read(std::size_t entry) {
  return on_device(entry) ? now_->sides.to_read(entry) : now_->entries.tensor(entry);
}

MemoryAccount GraphExecutor::Impl::memory() const {
  const LoadedModel& model = now_->model;
  std::size_t activations = model.interpreter != nullptr ? model.interpreter->held_bytes() : 0;
  for (const auto& prepared : prepared_) activations += prepared->entries.plan().bytes;
  MemoryAccount account{model.params.bytes_in_place, model.params.bytes_copied, activations};
  for (const auto& placement : now_->entries.placements()) {
    account.device_params += placement->param_bytes();
    account.device_activations += placement->activation_bytes();
    account.device_workspaces += placement->device().workspace().held_bytes();
  }
  return account;
}

std::vector<std::string> GraphExecutor::Impl::devices() const {
  std::vector<std::string> names;
  for (const auto& device : now_->model.devices) names.push_back(device->name());
  return names;
}

GraphExecutor::GraphExecutor(const ModelFiles& files, const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(load_model(files, options), options)) {}
GraphExecutor::GraphExecutor(std::shared_ptr<Module> library, const ExecutorOptions& options,
                             const std::vector<NamedArray>& arrays)
    : impl_(std::make_unique<Impl>(load_model(std::move(library), options, arrays), options)) {}
GraphExecutor::GraphExecutor(std::shared_ptr<Module> library, std::string_view graph_json,
                             const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(load_model(std::move(library), graph_json, options), options)) {}

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
void GraphExecutor::set_input_zero_copy(std::size_t index, const DeviceTensor& tensor) {
  impl_->set_input_zero_copy(index, tensor);
}
void GraphExecutor::set_output_zero_copy(std::size_t index, const Tensor& tensor) {
  impl_->set_output_zero_copy(index, tensor);
}
void GraphExecutor::set_output_zero_copy(std::size_t index, const DeviceTensor& tensor) {
  impl_->set_output_zero_copy(index, tensor);
}
Tensor GraphExecutor::output(std::size_t index) const { return impl_->output(index); }
void GraphExecutor::set_threads(std::shared_ptr<ThreadPool> threads) {
  impl_->set_threads(std::move(threads));
}
void GraphExecutor::run() { impl_->run(); }
void GraphExecutor::run_async() { impl_->run_async(); }
void GraphExecutor::wait() { impl_->wait(); }
MemoryAccount GraphExecutor::memory() const { return impl_->memory(); }
std::vector<std::string> GraphExecutor::devices() const { return impl_->devices(); }

}  // namespace run_model
