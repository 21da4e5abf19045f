#include <run_model/relax_session.h>

#include <utility>

#include <run_model/dtype.h>
#include <run_model/error.h>
#include "base/text.h"
#include "runtime/loading/model_library.h"
#include "runtime/relax/executable.h"
#include "runtime/relax/functions/runtime_functions.h"
#include "runtime/relax/machine.h"
#include "runtime/relax/relax_model.h"
#include "runtime/relax/values.h"
#include "runtime/threads/call_context.h"

namespace run_model {
namespace {

[[noreturn]] void fail_kind(const FfiValue& value, const std::string& expected) {
  throw Error(ErrorKind::kMismatch,
              "the value is " + std::string(ffi_type_name(value)) + ", expected " + expected);
}

// The other form of bool in all tensors of a value: the model's own type, or the plain one.
FfiValue with_bool(const FfiValue& value, DLDataType from, DLDataType to) {
  if (const FfiTensorObject* tensor = as_tensor(value)) {
    if (!same_dtype(tensor->tensor.dtype, from)) return value;
    return make_tensor(tensor->shape(), to, tensor->data(), std::make_shared<FfiValue>(value));
  }
  const FfiArrayObject* array = as_array(value);
  if (array == nullptr) return value;
  std::vector<FfiValue> items;
  for (const FfiValue& item : array->items) items.push_back(with_bool(item, from, to));
  return FfiValue::of_array(std::move(items));
}

}  // namespace

struct RelaxValue::Content {
  FfiValue value;
};

RelaxValue::RelaxValue() : RelaxValue(std::make_shared<const Content>()) {}

RelaxValue::RelaxValue(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

RelaxValue RelaxValue::of_tensor(const Tensor& tensor) {
  if (!tensor.defined()) throw Error(ErrorKind::kMismatch, "an empty tensor was given");
  auto owner = std::make_shared<Tensor>(tensor.aligned() ? tensor : tensor.clone());
  return RelaxValue(std::make_shared<const Content>(
      Content{make_tensor(owner->shape(), owner->dtype(), owner->data(), owner)}));
}

RelaxValue RelaxValue::of_shape(const std::vector<std::int64_t>& dims) {
  return RelaxValue(std::make_shared<const Content>(Content{FfiValue::of_shape(dims)}));
}

RelaxValue RelaxValue::of_integer(std::int64_t number) {
  return RelaxValue(std::make_shared<const Content>(Content{FfiValue::of_integer(number)}));
}

RelaxValue RelaxValue::of_bool(bool truth) {
  return RelaxValue(std::make_shared<const Content>(Content{FfiValue::of_bool(truth)}));
}

RelaxValue RelaxValue::of_real(double number) {
  return RelaxValue(std::make_shared<const Content>(Content{FfiValue::of_real(number)}));
}

RelaxValue RelaxValue::of_text(std::string_view text) {
  return RelaxValue(std::make_shared<const Content>(Content{FfiValue::of_text(text)}));
}

RelaxValue RelaxValue::of_tuple(const std::vector<RelaxValue>& items) {
  std::vector<FfiValue> values;
  values.reserve(items.size());
  for (const RelaxValue& item : items) values.push_back(item.content_->value);
  return RelaxValue(
      std::make_shared<const Content>(Content{FfiValue::of_array(std::move(values))}));
}

RelaxValue::Kind RelaxValue::kind() const {
  switch (content_->value.type) {
    case kFfiNone:
      return Kind::kNothing;
    case kFfiInt:
      return Kind::kInteger;
    case kFfiBool:
      return Kind::kBool;
    case kFfiFloat:
      return Kind::kReal;
    case kFfiSmallText:
    case kFfiText:
      return Kind::kText;
    case kFfiShape:
      return Kind::kShape;
    case kFfiTensor:
      return Kind::kTensor;
    case kFfiArray:
      return Kind::kTuple;
    default:
      return Kind::kState;
  }
}

Tensor RelaxValue::tensor() const {
  const FfiTensorObject* tensor = as_tensor(content_->value);
  if (tensor == nullptr) fail_kind(content_->value, "a tensor");
  const std::span<const std::int64_t> shape = tensor->shape();
  return Tensor::view(tensor->data(), {shape.begin(), shape.end()}, tensor->tensor.dtype,
                      std::make_shared<FfiValue>(content_->value));
}

std::vector<std::int64_t> RelaxValue::shape() const {
  const FfiShapeObject* shape = as_shape(content_->value);
  if (shape == nullptr) fail_kind(content_->value, "a shape");
  return {shape->data, shape->data + shape->size};
}

std::int64_t RelaxValue::integer() const {
  const FfiValue& value = content_->value;
  if (value.type != kFfiInt && value.type != kFfiBool) fail_kind(value, "an integer");
  return value.integer;
}

double RelaxValue::real() const {
  if (content_->value.type != kFfiFloat) fail_kind(content_->value, "a number");
  return content_->value.real;
}

std::string RelaxValue::text() const {
  if (kind() != Kind::kText) fail_kind(content_->value, "a text");
  return text_of(content_->value);
}

std::vector<RelaxValue> RelaxValue::items() const {
  const FfiArrayObject* array = as_array(content_->value);
  if (array == nullptr) fail_kind(content_->value, "a tuple");
  std::vector<RelaxValue> items;
  for (const FfiValue& item : array->items) {
    items.push_back(RelaxValue(std::make_shared<const Content>(Content{item})));
  }
  return items;
}

class RelaxSession::Impl {
 public:
  Impl(std::shared_ptr<Module> library, std::shared_ptr<ThreadPool> threads)
      : module_(std::move(library)),
        threads_(std::move(threads)),
        source_("library " + path_in_quotes(module_->path())),
        library_(library_of(*module_)),
        executable_(executable_of(library_, source_)),
        machine_(*executable_, library_) {}

  std::vector<std::string> functions() const { return callable_functions(*executable_); }

  FfiValue call(const std::string& name, std::vector<FfiValue> arguments) {
    const std::shared_ptr<ThreadPool> threads = threads_ ? threads_ : ThreadPool::shared();
    const CurrentPool pool(*threads);
    if (executable_->bool_is_a_type) {
      for (FfiValue& each : arguments) each = with_bool(each, kPlainBoolType, kFfiBoolType);
    }
    const std::vector<FfiAny> borrowed(arguments.begin(), arguments.end());
    FfiValue result =
        is_builtin(name)
            ? machine_.call(*as_function(make_relax_function(library_, name)), borrowed)
            : machine_.call(choose_function(*executable_, name, source_), borrowed);
    return executable_->bool_is_a_type ? with_bool(result, kFfiBoolType, kPlainBoolType) : result;
  }

 private:
  // A function of the virtual machine, whether the model calls it itself or not.
  bool is_builtin(const std::string& name) const {
    if (!name.starts_with("vm.builtin.")) return false;
    const RelaxFunction* function = executable_->find(name);
    return function == nullptr || function->kind == RelaxFunctionKind::kPacked;
  }

  static const ModelLibrary& library_of(const Module& module) {
    const ModelLibrary* library = as_model_library(module);
    if (library == nullptr) throw Error(ErrorKind::kMismatch, "the module is no compiled library");
    return *library;
  }

  static std::shared_ptr<const RelaxExecutable> executable_of(const ModelLibrary& library,
                                                              const std::string& source) {
    auto executable = library.relax_executable();
    if (executable != nullptr) return executable;
    throw Error(ErrorKind::kMismatch,
                source + " holds no executable of TVM's Relax virtual machine, whose functions "
                         "could be called one by one",
                "compile the model by TVM 0.21 or later, or run it as it is");
  }

  std::shared_ptr<Module> module_;
  std::shared_ptr<ThreadPool> threads_;
  std::string source_;
  const ModelLibrary& library_;
  std::shared_ptr<const RelaxExecutable> executable_;
  RelaxMachine machine_;
};

RelaxSession::RelaxSession(std::shared_ptr<Module> library, std::shared_ptr<ThreadPool> threads)
    : impl_(std::make_unique<Impl>(std::move(library), std::move(threads))) {}
RelaxSession::~RelaxSession() = default;
RelaxSession::RelaxSession(RelaxSession&&) noexcept = default;
RelaxSession& RelaxSession::operator=(RelaxSession&&) noexcept = default;

std::vector<std::string> RelaxSession::functions() const { return impl_->functions(); }

RelaxValue RelaxSession::call(const std::string& function, std::span<const RelaxValue> arguments) {
  std::vector<FfiValue> values;
  values.reserve(arguments.size());
  for (const RelaxValue& argument : arguments) values.push_back(argument.content_->value);
  return RelaxValue(std::make_shared<const RelaxValue::Content>(
      RelaxValue::Content{impl_->call(function, std::move(values))}));
}

}  // namespace run_model
