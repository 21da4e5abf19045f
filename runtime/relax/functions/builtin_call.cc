#include "runtime/relax/functions/builtin_call.h"

#include <limits>

#include "base/text.h"
#include "runtime/relax/tracer.h"

namespace run_model {

void RelaxCall::fail(const std::string& problem) const {
  throw Error(ErrorKind::kFormat, "the model calls " + in_quotes(name) + " wrongly: " + problem,
              "export it again");
}

const FfiAny& RelaxCall::at(std::size_t index) const {
  if (index >= args.size()) {
    fail("with " + std::to_string(args.size()) + " arguments, expected more");
  }
  expect_traced(args[index]);
  return args[index];
}

std::int64_t RelaxCall::integer(std::size_t index) const {
  const FfiAny& value = at(index);
  if (value.type != kFfiInt && value.type != kFfiBool) {
    fail("argument " + std::to_string(index) + " is " + std::string(ffi_type_name(value)) +
         ", expected an integer");
  }
  return value.integer;
}

std::size_t RelaxCall::count(std::size_t index) const {
  const std::int64_t value = integer(index);
  if (value < 0 ||
      static_cast<std::uint64_t>(value) > std::numeric_limits<std::size_t>::max() / 2) {
    fail("argument " + std::to_string(index) + " is " + std::to_string(value));
  }
  return static_cast<std::size_t>(value);
}

DLDataType RelaxCall::dtype(std::size_t index) const {
  const FfiAny& value = at(index);
  if (value.type != kFfiDataType) {
    fail("argument " + std::to_string(index) + " is " + std::string(ffi_type_name(value)) +
         ", expected an element type");
  }
  return value.dtype;
}

FfiTensorObject& RelaxCall::tensor(std::size_t index) const {
  FfiTensorObject* object = as_tensor(at(index));
  if (object == nullptr) {
    fail("argument " + std::to_string(index) + " is " + std::string(ffi_type_name(at(index))) +
         ", expected a tensor");
  }
  return *object;
}

std::span<const std::int64_t> RelaxCall::shape(std::size_t index) const {
  if (const FfiTensorObject* object = as_tensor(at(index))) return object->shape();
  const FfiShapeObject* shape = as_shape(at(index));
  if (shape == nullptr) {
    fail("argument " + std::to_string(index) + " is " + std::string(ffi_type_name(at(index))) +
         ", expected a shape");
  }
  return {shape->data, shape->size};
}

const FfiArrayObject& RelaxCall::array(std::size_t index) const {
  const FfiArrayObject* object = as_array(at(index));
  if (object == nullptr) {
    fail("argument " + std::to_string(index) + " is " + std::string(ffi_type_name(at(index))) +
         ", expected a tuple");
  }
  return *object;
}

const void* RelaxCall::values(std::size_t index) const {
  const FfiTensorObject& object = tensor(index);
  if (object.has_values()) return object.data();
  const void* constant = machine.tracer()->constant_values(object);
  if (constant != nullptr) return constant;
  throw NotTraceable("its course depends on the values of a tensor (" + std::string(name) + ")");
}

}  // namespace run_model
