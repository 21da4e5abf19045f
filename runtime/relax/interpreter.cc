#include "runtime/relax/interpreter.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <run_model/error.h>
#include "runtime/relax/values.h"

namespace run_model {
namespace {

Tensor tensor_of_numbers(std::vector<std::int64_t> shape, DLDataType dtype, const void* numbers) {
  Tensor tensor = Tensor::empty(std::move(shape), dtype);
  if (tensor.nbytes() > 0) std::memcpy(tensor.data(), numbers, tensor.nbytes());
  return tensor;
}

FfiValue number_of(const Tensor& tensor) {
  const double real = to_doubles(tensor).at(0);
  if (tensor.dtype().code == kDLFloat) return FfiValue::of_real(real);
  if (same_dtype(tensor.dtype(), kPlainBoolType)) return FfiValue::of_bool(real != 0);
  // Beyond 2^53 a double would round.
  if (same_dtype(tensor.dtype(), {kDLInt, 64, 1})) {
    return FfiValue::of_integer(tensor.elements<std::int64_t>()[0]);
  }
  return FfiValue::of_integer(static_cast<std::int64_t>(real));
}

FfiValue value_of(const Tensor& tensor, RelaxInputKind kind, bool bool_is_a_type) {
  if (kind == RelaxInputKind::kShape) {
    const auto numbers = tensor.elements<std::int64_t>();
    return FfiValue::of_shape({numbers.begin(), numbers.end()});
  }
  if (kind == RelaxInputKind::kNumber) return number_of(tensor);
  const bool is_bool = bool_is_a_type && same_dtype(tensor.dtype(), kPlainBoolType);
  // An output may be the input itself, and outlive it.
  return make_tensor(tensor.shape(), is_bool ? kFfiBoolType : tensor.dtype(), tensor.data(),
                     std::make_shared<Tensor>(tensor));
}

}  // namespace

RelaxInterpreter::RelaxInterpreter(const RelaxExecutable& executable, const RelaxFunction& function,
                                   const std::vector<RelaxInput>& forms,
                                   const ModelLibrary& library)
    : executable_(executable), function_(function), forms_(forms), machine_(executable, library) {}

void RelaxInterpreter::run(std::span<const Tensor> inputs) {
  std::vector<FfiValue> values;
  values.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values.push_back(value_of(inputs[i], forms_[i].kind, executable_.bool_is_a_type));
  }
  const std::vector<FfiValue> arguments = arguments_of(forms_, std::move(values));
  const std::vector<FfiAny> borrowed(arguments.begin(), arguments.end());
  outputs_.clear();  // their memory serves this run
  output_tuples_.clear();
  add_outputs(machine_.call(function_, borrowed));
}

void RelaxInterpreter::add_outputs(const FfiValue& result) {
  const FfiArrayObject* const array = as_array(result);
  output_tuples_.push_back(array != nullptr ? array->size : -1);
  if (const FfiTensorObject* tensor = as_tensor(result)) {
    DLDataType dtype = tensor->tensor.dtype;
    if (same_dtype(dtype, kFfiBoolType)) dtype = kPlainBoolType;
    const std::span<const std::int64_t> shape = tensor->shape();
    outputs_.push_back(Tensor::view(tensor->data(), {shape.begin(), shape.end()}, dtype,
                                    std::make_shared<FfiValue>(result)));
    return;
  }
  if (array != nullptr) {
    for (const FfiValue& item : array->items) add_outputs(item);
    return;
  }
  if (const FfiShapeObject* shape = as_shape(result)) {
    outputs_.push_back(
        tensor_of_numbers({static_cast<std::int64_t>(shape->size)}, {kDLInt, 64, 1}, shape->data));
    return;
  }
  if (result.type == kFfiInt || result.type == kFfiBool) {
    outputs_.push_back(tensor_of_numbers({}, {kDLInt, 64, 1}, &result.integer));
    return;
  }
  if (result.type == kFfiFloat) {
    outputs_.push_back(tensor_of_numbers({}, {kDLFloat, 64, 1}, &result.real));
    return;
  }
  throw Error(ErrorKind::kIncompatible,
              "the model gives " + std::string(ffi_type_name(result)) + ", which is no tensor");
}

}  // namespace run_model
