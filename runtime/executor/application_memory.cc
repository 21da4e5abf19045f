// Memory of the application that an executor reads inputs from and writes outputs to.
#include <string>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/devices/device_memory_view.h"
#include "runtime/executor/impl.h"

namespace run_model {
namespace {

void check_buffer_alignment(const TensorInfo& info, const Tensor& tensor) {
  if (tensor.aligned()) return;
  throw Error(ErrorKind::kMismatch,
              "the memory given for " + in_quotes(info.name) + " is not aligned to " +
                  std::to_string(kTensorAlignment) + " bytes",
              "make it with Tensor::empty, or let set_input copy it");
}

}  // namespace

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

void GraphExecutor::Impl::set_argument_zero_copy(std::size_t index, const Tensor& tensor) {
  if (tensor.defined()) check_buffer_alignment(arguments_.at(index), tensor);
  if (!takes_shape(index, tensor, true)) return;
  if (const std::size_t entry = argument_entry(index); on_device(entry)) {
    bring_home(entry);
    now_->sides.write_from(entry, tensor);
    set_[index] = true;
    return;
  }
  now_->entries.move_to(argument_entry(index), tensor);
  if (index < in_place_.size()) in_place_[index] = tensor;
  set_[index] = true;
}

// Of another device or form than the entry.
void GraphExecutor::Impl::check_device_memory(const TensorInfo& info, std::size_t entry,
                                              const DeviceTensor& tensor) const {
  const OpenDevice* device = now_->entries.device_of(entry);
  if (!tensor.defined()) {
    throw Error(ErrorKind::kMismatch, "an empty tensor was given for " + in_quotes(info.name));
  }
  if (device != &tensor.memory()->device()) {
    throw Error(ErrorKind::kMismatch,
                "the memory given for " + in_quotes(info.name) + " is on " + tensor.device_name() +
                    ", but the model has it " +
                    (device == nullptr ? "in the CPU's memory" : "on " + device->name()),
                "give a tensor of the host, or load the model on that device");
  }
  if (tensor.shape() != info.shape || !same_dtype(tensor.dtype(), info.dtype)) {
    throw Error(ErrorKind::kMismatch,
                in_quotes(info.name) + " is " + tensor_form_name(info.dtype, info.shape) +
                    ", but " + tensor_form_name(tensor.dtype(), tensor.shape()) + " was given");
  }
}

// Of what the caller gave nothing that is written may be what something else is. Seen when it is
// run: two tensors that take turns are given one after the other.
void GraphExecutor::Impl::check_overlaps() {
  if (overlaps_checked_) return;
  const MemoryPlan& plan = now_->entries.plan();
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::size_t entry = now_->model.graph.outputs[i];
    const auto written = on_devices_.find(entry);
    if (written == on_devices_.end()) continue;
    for (const auto& [other, given] : on_devices_) {
      if (plan.root[other] == plan.root[entry]) continue;
      if (!written->second.memory()->overlaps(*given.memory())) continue;
      throw Error(ErrorKind::kMismatch,
                  "the memory given for " + in_quotes(outputs_[i].name) +
                      " overlaps what another output or an input was given",
                  "give each memory of its own; for a state, two tensors in turns");
    }
  }
  overlaps_checked_ = true;
}

// What was recorded refers to the memory that the entry had.
void GraphExecutor::Impl::place_on_device(std::size_t entry, const DeviceTensor& tensor) {
  if (now_->entries.data(entry) != tensor.memory()->handle()) {
    now_->device_run.forget();
    now_->entries.place_at(entry, tensor.memory()->handle());
  }
  now_->sides.leave(entry);
  on_devices_[entry] = tensor;
  overlaps_checked_ = false;
}

void GraphExecutor::Impl::bring_home(std::size_t entry) {
  const auto given = on_devices_.find(entry);
  if (given == on_devices_.end()) return;
  now_->device_run.forget();
  now_->entries.place_home(entry);
  on_devices_.erase(given);
}

void GraphExecutor::Impl::set_input_zero_copy(std::size_t index, const DeviceTensor& tensor) {
  const std::size_t argument = argument_of_input(index);
  const std::size_t entry = argument_entry(argument);
  check_device_memory(arguments_[argument], entry, tensor);
  place_on_device(entry, tensor);
  set_[argument] = true;
}

void GraphExecutor::Impl::require_graph_outputs() const {
  if (now_->model.failure != nullptr) std::rethrow_exception(now_->model.failure);
  if (now_->model.interpreter == nullptr) return;
  throw Error(ErrorKind::kMismatch, "the memory of an interpreted model's outputs cannot be chosen",
              "copy them with output()");
}

void GraphExecutor::Impl::set_output_zero_copy(std::size_t index, const Tensor& tensor) {
  require_graph_outputs();
  check_form(outputs_.at(index), tensor, "output ");
  check_buffer_alignment(outputs_[index], tensor);
  check_output_memory(index, tensor.data());
  if (const std::size_t entry = now_->model.graph.outputs[index]; on_device(entry)) {
    bring_home(entry);
    now_->sides.read_into(entry, tensor);
  } else {
    now_->entries.move_to(entry, tensor);
  }
  output_memory_[index] = tensor.data();
}

void GraphExecutor::Impl::set_output_zero_copy(std::size_t index, const DeviceTensor& tensor) {
  require_graph_outputs();
  const std::size_t entry = now_->model.graph.outputs.at(index);
  check_device_memory(outputs_[index], entry, tensor);
  check_output_memory(index, tensor.memory()->handle());
  place_on_device(entry, tensor);
  output_memory_[index] = tensor.memory()->handle();
}

// Whether an output can be written there.
void GraphExecutor::Impl::check_output_memory(std::size_t index, const void* given) const {
  const std::size_t entry = now_->model.graph.outputs[index];
  if (placed_by_caller_[now_->model.plan.alias_of[entry]]) {
    throw Error(ErrorKind::kMismatch, "output " + std::to_string(index) +
                                          " is an input or a parameter itself: nothing writes it");
  }
  for (std::size_t other = 0; other < outputs_.size(); ++other) {
    const void* memory = output_memory_[other];
    if (other == index || memory == nullptr || memory == given) continue;
    if (now_->model.plan.alias_of[now_->model.graph.outputs[other]] !=
        now_->model.plan.alias_of[entry])
      continue;
    throw Error(ErrorKind::kMismatch,
                "output " + std::to_string(index) + " is the same tensor as output " +
                    std::to_string(other) + ", which is written to other memory already",
                "give both the same memory, or copy one of them");
  }
}

}  // namespace run_model
