// What an executor's inputs and outputs are, and inputs that come in other shapes than before.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <run_model/error.h>
#include "runtime/executor/impl.h"
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

}  // namespace

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
      copy_numbers(from.entries.tensor(graph.nodes[graph.inputs[i]].first_output),
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

}  // namespace run_model
