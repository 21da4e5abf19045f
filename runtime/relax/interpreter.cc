#include "runtime/relax/interpreter.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include <run_model/error.h>
#include "runtime/relax/values.h"

namespace run_model {
namespace {

constexpr DLDataType kPlainBool{kDLUInt, 1, 1};

Tensor tensor_of_numbers(std::vector<std::int64_t> shape, DLDataType dtype, const void* numbers) {
  Tensor tensor = Tensor::empty(std::move(shape), dtype);
  if (tensor.nbytes() > 0) std::memcpy(tensor.data(), numbers, tensor.nbytes());
  return tensor;
}

}  // namespace

RelaxInterpreter::RelaxInterpreter(const RelaxExecutable& executable, const RelaxFunction& function,
                                   const ModelLibrary& library)
    : executable_(executable), function_(function), machine_(executable, library) {}

void RelaxInterpreter::run(std::span<const Tensor> inputs) {
  std::vector<FfiValue> arguments;
  arguments.reserve(inputs.size());
  for (const Tensor& input : inputs) {
    const bool is_bool = same_dtype(input.dtype(), kPlainBool) && executable_.bool_is_a_type;
    arguments.push_back(
        make_tensor(input.shape(), is_bool ? kFfiBoolType : input.dtype(), input.data(), nullptr));
  }
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
    if (same_dtype(dtype, kFfiBoolType)) dtype = kPlainBool;
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
