#include "rpc/modules/machine_function.h"

#include <utility>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/loading/model_library.h"
#include "runtime/relax/ffi_abi.h"
#include "runtime/relax/relax_model.h"

namespace run_model::rpc {
namespace {

constexpr DLDataType kPlainBool{kDLUInt, 1, 1};

Tensor with_dtype(const Tensor& tensor, DLDataType dtype) {
  return Tensor::view(tensor.data(), tensor.shape(), dtype, std::make_shared<Tensor>(tensor));
}

}  // namespace

MachineResult MachineResult::clone() const {
  std::vector<Tensor> tensors;
  for (const Tensor& tensor : tensors_) tensors.push_back(tensor.clone());
  return {tuples_, std::move(tensors)};
}

MachineResult::Place MachineResult::find(const Arguments& arguments, std::size_t first) const {
  Place place;
  for (std::size_t i = first; i < arguments.size(); ++i) {
    const std::int64_t fields = tuples_[place.node];
    if (fields < 0) {
      throw Error(ErrorKind::kMismatch,
                  "the index " + std::to_string(arguments.integer(i)) +
                      " is asked for of an output that is a tensor, not a tuple");
    }
    const std::int64_t wanted = arguments.integer_within(i, 0, fields - 1);
    ++place.node;
    // The parts before it, each with all that lies in it.
    for (std::int64_t left = wanted; left > 0; --left, ++place.node) {
      if (tuples_[place.node] < 0) {
        ++place.tensor;
      } else {
        left += tuples_[place.node];
      }
    }
  }
  return place;
}

std::int64_t MachineResult::arity(const Arguments& arguments, std::size_t first) const {
  return tuples_[find(arguments, first).node];
}

const Tensor& MachineResult::tensor(const Arguments& arguments, std::size_t first) const {
  const Place place = find(arguments, first);
  if (tuples_[place.node] < 0) return tensors_[place.tensor];
  throw Error(ErrorKind::kMismatch,
              "the output is a tuple of " + std::to_string(tuples_[place.node]) +
                  ", which cannot be sent over RPC",
              "ask for one of its fields by one more index");
}

MachineFunction::MachineFunction(std::shared_ptr<Module> library, const std::string& name)
    : library_(std::move(library)),
      executable_(as_model_library(*library_)->relax_executable()),
      function_(choose_function(*executable_, name, "library " + path_in_quotes(library_->path()))),
      forms_(input_forms(*executable_, function_)) {}

std::vector<Tensor> MachineFunction::tensors(const Arguments& arguments, std::size_t first,
                                             bool copies) const {
  if (arguments.size() - first != function_.parameters) {
    throw Error(ErrorKind::kMismatch,
                "the function " + in_quotes(function_.name) + " takes " +
                    std::to_string(function_.parameters) + " tensors (" +
                    comma_list(forms_, [](const RelaxInput& form) { return form.name; }) +
                    "), but was given " + std::to_string(arguments.size() - first));
  }
  for (const RelaxInput& form : forms_) {
    if (form.kind == RelaxInputKind::kTensor && form.path.empty()) continue;
    throw Error(ErrorKind::kIncompatible,
                "the function " + in_quotes(function_.name) +
                    " takes a tuple, a shape or a number (" + form.name +
                    "), which rpc_server does not support",
                "run it on the board by run_model");
  }
  std::vector<Tensor> tensors;
  for (std::size_t i = first; i < arguments.size(); ++i) {
    Tensor tensor = arguments.tensor(i).tensor;
    if (copies || !tensor.aligned()) tensor = tensor.clone();
    if (same_dtype(tensor.dtype(), kFfiBoolType)) tensor = with_dtype(tensor, kPlainBool);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

bool MachineFunction::fits_unknown(const std::vector<Tensor>& inputs) const {
  std::size_t unknown = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (forms_[i].known) continue;
    const TensorInfo& form = given_forms_[unknown++];
    if (form.shape != inputs[i].shape() || !same_dtype(form.dtype, inputs[i].dtype())) return false;
  }
  return true;
}

// The executor never writes to its inputs, and reads them where they are.
void MachineFunction::use(const std::vector<Tensor>& inputs) {
  has_inputs_ = false;
  if (!executor_ || !fits_unknown(inputs)) {
    std::vector<NamedArray> arrays;
    given_forms_.clear();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (forms_[i].known) continue;
      arrays.push_back({forms_[i].name, inputs[i]});
      given_forms_.push_back({forms_[i].name, inputs[i].shape(), inputs[i].dtype(), {}});
    }
    ExecutorOptions options;
    options.function = function_.name;
    executor_.emplace(library_, options, arrays);
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) executor_->set_argument_zero_copy(i, inputs[i]);
}

void MachineFunction::leave_stateful() {
  if (!has_outputs_) return;
  stateful_result_.emplace(result().clone());
  has_outputs_ = false;
}

void MachineFunction::set_inputs(std::vector<Tensor> inputs) {
  inputs_ = std::move(inputs);
  has_inputs_ = false;
}

void MachineFunction::run_stateful() {
  if (!inputs_) {
    throw Error(ErrorKind::kMismatch,
                "the function " + in_quotes(function_.name) + " has no inputs yet",
                "call set_input() first");
  }
  if (!has_inputs_) {
    leave_stateful();
    use(*inputs_);
    has_inputs_ = true;
  }
  has_outputs_ = false;
  stateful_result_.reset();
  executor_->run();
  has_outputs_ = true;
}

MachineResult MachineFunction::stateful_result() const {
  if (has_outputs_) return result();
  if (stateful_result_) return *stateful_result_;
  throw Error(ErrorKind::kMismatch,
              "the function " + in_quotes(function_.name) + " has no outputs yet",
              "call invoke_stateful() first");
}

void MachineFunction::run(const std::vector<Tensor>& inputs) {
  leave_stateful();
  use(inputs);
  executor_->run();
}

MachineResult MachineFunction::result() const {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < executor_->outputs().size(); ++i) {
    tensors.push_back(to_client(executor_->output(i)));
  }
  return {executor_->output_tuples(), std::move(tensors)};
}

Tensor MachineFunction::to_client(const Tensor& tensor) const {
  const bool is_bool = executable_->bool_is_a_type && same_dtype(tensor.dtype(), kPlainBool);
  return is_bool ? with_dtype(tensor, kFfiBoolType) : tensor;
}

}  // namespace run_model::rpc
