#include <run_model/graph_executor.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/executor_impl.h"
#include "runtime/relax/interpreter.h"
#include "runtime/relax/relax_source.h"

namespace run_model {
namespace {

// As TensorInfo has them.
std::vector<std::string> symbols_of(const RelaxInput& input) {
  std::vector<std::string> symbols;
  if (input.is_static()) return symbols;
  for (const RelaxDimension& dim : input.dims) {
    const bool unnamed = dim.number < 0 && dim.symbol.empty();
    symbols.push_back(unnamed ? "?" : dim.symbol);
  }
  return symbols;
}

void copy(const Tensor& source, const Tensor& target) {
  if (target.nbytes() > 0) std::memmove(target.data(), source.data(), target.nbytes());
}

}  // namespace

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

void GraphExecutor::Impl::describe_interface() {
  const Graph& graph = now_->model.graph;
  const std::vector<bool> was_set = std::move(set_);
  set_.clear();
  arguments_.clear();
  inputs_.clear();
  input_arguments_.clear();
  std::vector<bool> is_param(graph.entries.size(), false);
  for (const BoundParam& param : now_->model.params.params) is_param[param.entry] = true;
  placed_by_caller_ = is_param;
  for (std::size_t number : graph.inputs) {
    const std::size_t entry = graph.nodes[number].first_output;
    const std::size_t argument = arguments_.size();
    arguments_.push_back(
        {graph.nodes[number].name, graph.entries[entry].shape, graph.entries[entry].dtype, {}});
    if (argument < shapes_.size()) {
      arguments_.back().symbols = symbols_of(now_->model.relax->inputs()[argument]);
    }
    const bool set = is_param[entry] || !require_inputs_;
    set_.push_back(set || (argument < was_set.size() && was_set[argument]));
    placed_by_caller_[entry] = true;
    if (is_param[entry]) continue;
    inputs_.push_back(arguments_.back());
    input_arguments_.push_back(argument);
  }
  describe_outputs();
}

void GraphExecutor::Impl::describe_outputs() {
  outputs_.clear();
  if (now_->model.interpreter != nullptr) {
    for (const Tensor& output : now_->model.interpreter->outputs()) {
      outputs_.push_back(
          {"output_" + std::to_string(outputs_.size()), output.shape(), output.dtype(), {}});
    }
  }
  const Graph& graph = now_->model.graph;
  const std::size_t count =
      graph.row_counts.empty() ? graph.outputs.size() : graph.row_counts.size();
  for (std::size_t i = 0; i < count; ++i) {
    const GraphEntry& entry = graph.entries[graph.outputs[i]];
    outputs_.push_back({"output_" + std::to_string(i), entry.shape, entry.dtype, {}});
  }
  output_memory_.assign(outputs_.size(), nullptr);
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

// Whether the tensor can go into the model as it is now; where it has to wait for others, it is
// kept. Throws Error(kMismatch) for a tensor that the input can never be.
bool GraphExecutor::Impl::takes_shape(std::size_t argument, const Tensor& tensor, bool in_place) {
  const TensorInfo& info = arguments_.at(argument);
  if (argument >= shapes_.size() || info.symbols.empty()) {
    check_form(info, tensor, "input ");
    return true;
  }
  const RelaxSource& source = *now_->model.relax;
  const std::string problem =
      tensor.defined() ? misfit_of_input(source.inputs()[argument], tensor.dtype(), tensor.shape())
                       : "an empty tensor was given";
  if (!problem.empty()) throw Error(ErrorKind::kMismatch, problem);
  shapes_[argument] = tensor.shape();
  set_[argument] = true;
  waiting_[argument] = {};
  if (source.misfit(shapes_).empty()) {
    switch_to_shapes();
    return true;
  }
  waiting_[argument] = {in_place ? tensor : tensor.clone(), in_place};
  return false;
}

// The models for a few shapes are kept, so that going back to one of them takes no memory.
void GraphExecutor::Impl::switch_to_shapes() {
  constexpr std::size_t kMostPrepared = 4;
  if (now_->shapes != shapes_) {
    const auto known = std::find_if(
        prepared_.begin(), prepared_.end(),
        [&](const std::unique_ptr<Prepared>& each) { return each->shapes == shapes_; });
    Prepared& before = *now_;
    if (known != prepared_.end()) {
      std::rotate(known, known + 1, prepared_.end());
    } else {
      auto made = std::make_unique<Prepared>(now_->model.relax->model_for(shapes_), planning_);
      made->shapes = shapes_;
      prepared_.push_back(std::move(made));
    }
    now_ = prepared_.back().get();
    ++generation_;
    describe_interface();
    hand_over(before);
    if (prepared_.size() > kMostPrepared) prepared_.erase(prepared_.begin());
  }
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const Waiting waiting = std::exchange(waiting_[i], {});
    if (!waiting.tensor.defined()) continue;
    if (waiting.in_place) {
      set_argument_zero_copy(i, waiting.tensor);
    } else {
      set_argument(i, waiting.tensor);
    }
  }
}

// Inputs that were set and have the same shape as before keep their values.
void GraphExecutor::Impl::hand_over(Prepared& from) {
  for (const std::size_t i : input_arguments_) {
    const std::size_t entry = argument_entry(i);
    const bool same = !waiting_[i].tensor.defined() && from.shapes[i] == shapes_[i];
    if (same && in_place_[i].defined()) {
      now_->entries.move_to(entry, in_place_[i]);
      continue;
    }
    in_place_[i] = {};
    now_->entries.move_home(entry);
    const Graph& graph = from.model.graph;
    if (same) {
      copy(from.entries.tensor(graph.nodes[graph.inputs[i]].first_output),
           now_->entries.tensor(entry));
    }
  }
}

void GraphExecutor::Impl::check_waiting() const {
  for (const Waiting& waiting : waiting_) {
    if (!waiting.tensor.defined()) continue;
    throw Error(ErrorKind::kMismatch, now_->model.relax->misfit(shapes_));
  }
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
  copy(tensor, on_device(entry) ? now_->sides.to_write(entry, false) : input(index));
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
  copy(tensor, on_device(entry) ? now_->sides.to_write(entry, false) : argument(index));
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

void GraphExecutor::Impl::set_threads(std::shared_ptr<ThreadPool> threads) {
  threads_ = std::move(threads);
}

std::shared_ptr<ThreadPool> GraphExecutor::Impl::pool() const {
  return threads_ != nullptr ? threads_ : ThreadPool::shared();
}

void GraphExecutor::Impl::run() {
  check_all_set();
  check_waiting();
  run_calls();
}

void GraphExecutor::Impl::run_async() {
  check_all_set();
  check_waiting();
  if (now_->device_run.uses_devices()) {
    start_calls();
  } else {
    run_calls();
  }
}

void GraphExecutor::Impl::wait() {
  if (!now_->device_run.uses_devices()) return;
  const auto locks = now_->device_run.lock();
  or_no_outputs([this] {
    now_->sides.download();
    now_->device_run.wait();
  });
}

// A run that failed leaves numbers that are no outputs.
void GraphExecutor::Impl::or_no_outputs(const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

void GraphExecutor::Impl::run_calls() {
  if (now_->device_run.uses_devices()) {
    const auto locks = now_->device_run.lock();
    start_calls();
    wait();
    return;
  }
  const std::shared_ptr<ThreadPool> threads = pool();
  CurrentPool use(*threads);
  failure_ = nullptr;
  or_no_outputs([this] { now_->calls.run_all(); });
  if (now_->model.interpreter != nullptr) describe_outputs();
}

// Outputs are stale from here on, should a function fail.
void GraphExecutor::Impl::start_calls() {
  const auto locks = now_->device_run.lock();
  const std::shared_ptr<ThreadPool> threads = pool();
  CurrentPool use(*threads);
  check_overlaps();
  failure_ = nullptr;
  or_no_outputs([this] {
    now_->sides.upload();
    now_->sides.note_change();
    now_->device_run.start();
  });
}

// On devices it is done when this returns.
void GraphExecutor::Impl::run_node(std::size_t index) {
  check_all_set();
  check_waiting();
  const auto locks = now_->device_run.lock();
  const std::shared_ptr<ThreadPool> threads = pool();
  CurrentPool use(*threads);
  failure_ = nullptr;
  if (!now_->device_run.uses_devices()) {
    now_->calls.run(index);
    return;
  }
  now_->sides.upload();
  now_->sides.note_change();
  now_->calls.run(index);
  now_->device_run.wait();
}

OpenDevice* GraphExecutor::Impl::device_of_node(std::size_t index) const {
  const GraphNode& node = graph().nodes[now_->calls.in_graph().at(index)];
  return node.num_outputs == 0 ? nullptr : now_->entries.device_of(node.first_output);
}

std::optional<double> GraphExecutor::Impl::run_node_timed(std::size_t index) {
  OpenDevice* device = device_of_node(index);
  if (device == nullptr) {
    run_node(index);
    return std::nullopt;
  }
  const std::lock_guard lock(device->mutex());
  now_->sides.upload();
  const Device::Mark start = device->device().mark();
  run_node(index);
  const double seconds = device->device().seconds_between(start, device->device().mark());
  device->device().forget_marks();
  return seconds;
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
