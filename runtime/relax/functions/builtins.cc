#include "runtime/relax/functions/builtins.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <run_model/dtype.h>
#include "base/text.h"
#include "runtime/relax/executable.h"
#include "runtime/relax/tracer.h"

namespace run_model {
namespace {

// What an error context of TVM's says of the value that is wrong: "ErrorContext(fn=main,
// loc=param[0], param=x, annotation=R.Tensor((n, 4), dtype="float32")) " and the like.
[[noreturn]] void mismatch(const FfiAny& context, const std::string& problem) {
  const std::string where = text_of(context);
  throw Error(ErrorKind::kMismatch, (where.empty() ? "" : "in " + where + ": ") + problem,
              "give inputs whose shapes and types fit the model and each other");
}

// The numbers that stand for symbolic dimensions, a tensor of their own.
class ShapeHeap {
 public:
  ShapeHeap(const RelaxCall& call, std::size_t index) : call_(call) {
    const FfiAny& value = call.at(index);
    if (value.type == kFfiNone) return;  // a model without symbolic dimensions has none
    const FfiTensorObject& heap = call.tensor(index);
    if (!heap.has_values() || !same_dtype(heap.tensor.dtype, {kDLInt, 64, 1}) ||
        heap.tensor.ndim != 1) {
      call.fail("its numbers are no list of int64");
    }
    numbers_ = {static_cast<std::int64_t*>(heap.data()),
                static_cast<std::size_t>(heap.tensor.shape[0])};
  }

  std::int64_t& at(std::size_t index) const {
    if (index >= numbers_.size()) {
      call_.fail("there is no number " + std::to_string(index) + " among " +
                 std::to_string(numbers_.size()));
    }
    return numbers_[index];
  }

 private:
  const RelaxCall& call_;
  std::span<std::int64_t> numbers_;
};

// What is done with a number: match_shape and match_prim_value, make_shape and make_prim_value.
enum MatchCode : std::int64_t { kEqualsValue = 0, kStore = 1, kNothing = 2, kEqualsStored = 3 };
enum MakeCode : std::int64_t { kUseValue = 0, kLoad = 1 };

void match(const RelaxCall& call, const ShapeHeap& heap, std::size_t code_index,
           std::int64_t number, const std::string& what, const FfiAny& context) {
  const std::int64_t code = call.integer(code_index);
  switch (code) {
    case kEqualsValue: {
      const std::int64_t expected = call.integer(code_index + 1);
      if (number != expected) {
        mismatch(context,
                 what + " is " + std::to_string(number) + ", expected " + std::to_string(expected));
      }
      return;
    }
    case kStore:
      heap.at(call.count(code_index + 1)) = number;
      return;
    case kNothing:
      return;
    case kEqualsStored: {
      const std::int64_t expected = heap.at(call.count(code_index + 1));
      if (number != expected) {
        mismatch(context, what + " is " + std::to_string(number) + ", but " +
                              std::to_string(expected) + " elsewhere");
      }
      return;
    }
    default:
      call.fail("with code " + std::to_string(code));
  }
}

std::int64_t made(const RelaxCall& call, const ShapeHeap& heap, std::size_t code_index) {
  const std::int64_t code = call.integer(code_index);
  if (code == kUseValue) return call.integer(code_index + 1);
  if (code == kLoad) return heap.at(call.count(code_index + 1));
  call.fail("with code " + std::to_string(code));
}

void null_value(RelaxCall& call) { call.result = FfiValue(); }

// What it is given may be what nothing is done with.
void copy_value(RelaxCall& call) {
  if (call.args.empty()) call.fail("without an argument");
  call.result = FfiValue(call.args[0]);
}

// (tensor, kind of device, its number[, scope])
void to_device(RelaxCall& call) {
  if (call.integer(1) != kDLCPU) call.fail("for a device that is not the CPU");
  call.result = FfiValue(call.at(0));
}

void alloc_shape_heap(RelaxCall& call) {
  const auto size = static_cast<std::int64_t>(call.count(call.args.size() - 1));
  call.result = call.machine.allocate_tensor(std::span(&size, 1), {kDLInt, 64, 1});
  std::memset(as_tensor(call.result)->data(), 0, static_cast<std::size_t>(size) * 8);
}

// (machine, shape, device, element type[, scope])
void alloc_storage(RelaxCall& call) {
  const std::string scope = call.args.size() > 4 ? text_of(call.at(4)) : "";
  if (!scope.empty() && scope != "global") call.fail("for memory of scope " + in_quotes(scope));
  const std::size_t bytes = tensor_bytes(call.shape(1), call.dtype(3));
  Tracer* tracer = call.machine.tracer();
  call.result = tracer != nullptr ? tracer->storage(bytes) : call.machine.allocate_storage(bytes);
}

// (storage, offset, shape, element type)
void alloc_tensor(RelaxCall& call) {
  const FfiStorageObject* storage = as_storage(call.at(0));
  if (storage == nullptr) call.fail("argument 0 is no memory");
  const std::size_t offset = call.count(1);
  const std::span<const std::int64_t> shape = call.shape(2);
  const DLDataType dtype = call.dtype(3);
  const std::size_t bytes = tensor_bytes(shape, dtype);
  if (offset > storage->bytes || bytes > storage->bytes - offset) {
    call.fail("a tensor of " + std::to_string(bytes) + " bytes at " + std::to_string(offset) +
              " is beyond its memory of " + std::to_string(storage->bytes));
  }
  if (Tracer* tracer = call.machine.tracer()) {
    call.result = tracer->tensor(*storage, offset, shape, dtype);
    return;
  }
  call.result =
      make_tensor(shape, dtype, static_cast<char*>(storage->data) + offset, storage->owner);
}

void reshape(RelaxCall& call) {
  const FfiTensorObject& tensor = call.tensor(0);
  const std::span<const std::int64_t> shape = call.shape(1);
  if (element_count(shape) != element_count(tensor.shape())) {
    throw Error(ErrorKind::kMismatch, "the model makes " + shape_name(shape) + " of a tensor " +
                                          shape_name(tensor.shape()));
  }
  call.result = tensor.has_values()
                    ? make_tensor(shape, tensor.tensor.dtype, tensor.data(), tensor.owner)
                    : call.machine.tracer()->reshaped(tensor, shape);
}

// (tensor, shape, element type, offset in bytes): a part of a tensor as another one. One that does
// not begin where the tensor does is a copy, since compiled code expects aligned memory.
void create_view(RelaxCall& call) {
  const FfiTensorObject& tensor = call.tensor(0);
  const std::span<const std::int64_t> shape = call.shape(1);
  const DLDataType dtype = call.dtype(2);
  const std::size_t offset = call.count(3);
  const std::size_t bytes = tensor_bytes(shape, dtype);
  const std::size_t all = tensor_bytes(tensor.shape(), tensor.tensor.dtype);
  if (offset > all || bytes > all - offset) {
    call.fail("a part of " + std::to_string(bytes) + " bytes at " + std::to_string(offset) +
              " is beyond its tensor of " + std::to_string(all));
  }
  if (!tensor.has_values()) throw NotTraceable("it looks at parts of tensors");
  if (offset == 0) {
    call.result = make_tensor(shape, dtype, tensor.data(), tensor.owner);
    return;
  }
  call.result = call.machine.allocate_tensor(shape, dtype);
  std::memcpy(as_tensor(call.result)->data(), static_cast<const char*>(tensor.data()) + offset,
              bytes);
}

// Views begin where their memory does.
void ensure_zero_offset(RelaxCall& call) { call.result = FfiValue(call.at(0)); }

void shape_of(RelaxCall& call) {
  const std::span<const std::int64_t> shape = call.tensor(0).shape();
  call.result = FfiValue::of_shape({shape.begin(), shape.end()});
}

// (value, dimensions or -1[, element type], context)
void check_tensor_info(RelaxCall& call) {
  const FfiAny& context = call.at(call.args.size() - 1);
  const FfiTensorObject* tensor = as_tensor(call.at(0));
  if (tensor == nullptr) {
    mismatch(context, std::string(ffi_type_name(call.at(0))) + " was given, expected a tensor");
  }
  const std::int64_t ndim = call.integer(1);
  if (ndim != -1 && ndim != tensor->tensor.ndim) {
    mismatch(context, "a tensor " + shape_name(tensor->shape()) + " was given, expected " +
                          std::to_string(ndim) + " dimensions");
  }
  if (call.args.size() < 4 || call.at(2).type != kFfiDataType) return;
  if (!same_dtype(call.at(2).dtype, tensor->tensor.dtype)) {
    mismatch(context, "a tensor of " + dtype_name(tensor->tensor.dtype) + " was given, expected " +
                          dtype_name(call.at(2).dtype));
  }
}

void check_shape_info(RelaxCall& call) {
  const FfiShapeObject* shape = as_shape(call.at(0));
  const std::int64_t ndim = call.integer(1);
  if (shape != nullptr && (ndim == -1 || static_cast<std::uint64_t>(ndim) == shape->size)) return;
  mismatch(call.at(2), std::string(ffi_type_name(call.at(0))) + " was given, expected a shape of " +
                           std::to_string(ndim) + " dimensions");
}

void check_prim_value_info(RelaxCall& call) {
  const FfiAny& value = call.at(0);
  const FfiAny& context = call.at(call.args.size() - 1);
  if (value.type == kFfiInt || value.type == kFfiBool || value.type == kFfiFloat) return;
  mismatch(context, std::string(ffi_type_name(value)) + " was given, expected a number");
}

void check_tuple_info(RelaxCall& call) {
  const FfiArrayObject* array = as_array(call.at(0));
  const std::int64_t size = call.integer(1);
  if (array != nullptr && array->size == size) return;
  mismatch(call.at(2), std::string(ffi_type_name(call.at(0))) + " was given, expected a tuple of " +
                           std::to_string(size));
}

void check_func_info(RelaxCall& call) {
  if (as_function(call.at(0)) == nullptr) call.fail("argument 0 is no function");
}

// (value, heap, n, n × (code, number), context)
void match_shape(RelaxCall& call) {
  const std::span<const std::int64_t> shape = call.shape(0);
  const ShapeHeap heap(call, 1);
  const std::size_t count = call.count(2);
  if (count > call.args.size()) call.fail("with too few arguments");
  const FfiAny& context = call.at(3 + 2 * count);
  if (shape.size() != count) {
    mismatch(context, "a shape " + shape_name(shape) + " was given, expected " +
                          std::to_string(count) + " dimensions");
  }
  for (std::size_t i = 0; i < count; ++i) {
    match(call, heap, 3 + 2 * i, shape[i],
          "dimension " + std::to_string(i) + " of " + shape_name(shape), context);
  }
}

// (value, heap, code, number, context)
void match_prim_value(RelaxCall& call) {
  const ShapeHeap heap(call, 1);
  match(call, heap, 2, call.integer(0), "the number given", call.at(4));
}

// (heap, n, n × (code, number))
void make_shape(RelaxCall& call) {
  const ShapeHeap heap(call, 0);
  const std::size_t count = call.count(1);
  if (count > call.args.size()) call.fail("with too few arguments");
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < count; ++i) dims.push_back(made(call, heap, 2 + 2 * i));
  call.result = FfiValue::of_shape(std::move(dims));
}

// (heap, code, number)
void make_prim_value(RelaxCall& call) {
  const ShapeHeap heap(call, 0);
  call.result = FfiValue::of_integer(made(call, heap, 1));
}

void make_tuple(RelaxCall& call) {
  std::vector<FfiValue> items;
  for (const FfiAny& item : call.args) items.emplace_back(item);
  call.result = FfiValue::of_array(std::move(items));
  // A tuple that holds another twice, which holds another twice, would soon be without end.
  const FfiArrayObject& made = *as_array(call.result);
  if (made.all_items > kMostRelaxItems || made.depth > kDeepestRelaxTuple) {
    call.fail("a tuple of " + std::to_string(made.all_items) + " items, " +
              std::to_string(made.depth) + " deep");
  }
}

const FfiValue& item_of(const RelaxCall& call) {
  const FfiArrayObject& array = call.array(0);
  const std::size_t index = call.count(1);
  if (index >= array.items.size()) {
    call.fail("item " + std::to_string(index) + " of " + std::to_string(array.items.size()));
  }
  return array.items[index];
}

void tuple_getitem(RelaxCall& call) { call.result = item_of(call); }

void tuple_reset_item(RelaxCall& call) { const_cast<FfiValue&>(item_of(call)) = FfiValue(); }

// The integers of a tensor, whatever their width.
std::vector<std::int64_t> integers_of(const RelaxCall& call, std::size_t index) {
  const FfiTensorObject& tensor = call.tensor(index);
  const DLDataType dtype = tensor.tensor.dtype;
  const std::size_t bytes = dtype_bytes(dtype);
  if (dtype.code == kDLFloat || dtype.code == kDLBfloat || dtype.lanes != 1 || bytes > 8) {
    call.fail("a tensor of " + dtype_name(dtype) + " is none of integers");
  }
  const auto* data = static_cast<const char*>(call.values(index));
  std::vector<std::int64_t> numbers;
  const std::int64_t count = element_count(tensor.shape());
  for (std::int64_t i = 0; i < count; ++i) {
    const char* at = data + static_cast<std::size_t>(i) * bytes;
    const auto read = [&]<typename T>(T number) {
      std::memcpy(&number, at, sizeof(number));
      numbers.push_back(static_cast<std::int64_t>(number));
    };
    const bool sign = dtype.code == kDLInt;
    if (bytes == 8) read(std::int64_t{});
    if (bytes == 4) sign ? read(std::int32_t{}) : read(std::uint32_t{});
    if (bytes == 2) sign ? read(std::int16_t{}) : read(std::uint16_t{});
    if (bytes == 1) sign ? read(std::int8_t{}) : read(std::uint8_t{});
  }
  return numbers;
}

void read_if_cond(RelaxCall& call) {
  if (as_tensor(call.at(0)) == nullptr) {
    call.result = FfiValue::of_bool(call.integer(0) != 0);
    return;
  }
  const std::vector<std::int64_t> numbers = integers_of(call, 0);
  if (numbers.size() != 1) call.fail("a tensor of one element is expected");
  call.result = FfiValue::of_bool(numbers[0] != 0);
}

void tensor_to_shape(RelaxCall& call) {
  if (call.tensor(0).tensor.ndim != 1) call.fail("a tensor of one dimension is expected");
  call.result = FfiValue::of_shape(integers_of(call, 0));
}

// (function, its tensors, a shape whose numbers are passed one by one)
void call_tir_dyn(RelaxCall& call) {
  const FfiFunctionObject* function = as_function(call.at(0));
  if (function == nullptr) call.fail("argument 0 is no function");
  if (call.args.size() < 2) call.fail("with too few arguments");
  const std::size_t last = call.args.size() - 1;
  const std::span<const std::int64_t> numbers = call.shape(last);
  std::vector<FfiAny> arguments(call.args.begin() + 1, call.args.end() - 1);
  for (const std::int64_t number : numbers) arguments.push_back(FfiValue::of_integer(number));
  call.result = call.machine.call(*function, arguments);
}

// Whether a value is, or holds, a function that has arguments of its own.
bool holds_closure(const FfiAny& value) {
  if (const FfiFunctionObject* function = as_function(value))
    return function->bound.type != kFfiNone;
  const FfiArrayObject* array = as_array(value);
  return array != nullptr && std::any_of(array->items.begin(), array->items.end(), holds_closure);
}

// (a function, the arguments that it is always called with, after all others …)
void make_closure(RelaxCall& call) {
  const FfiFunctionObject* function = as_function(call.at(0));
  if (function == nullptr) call.fail("argument 0 is no function");
  const std::span<const FfiAny> kept = call.args.subspan(1);
  // Else they could hold each other without end.
  if (std::any_of(kept.begin(), kept.end(), holds_closure)) {
    call.fail("a function keeps another that keeps arguments");
  }
  FfiValue made = make_function(function->safe_call, function->name);
  FfiFunctionObject& closure = *as_function(made);
  for (const FfiAny& argument : kept) closure.last_arguments.emplace_back(argument);
  const bool is_closure = function->bound.type != kFfiNone;
  closure.bound = is_closure ? function->bound : FfiValue(call.at(0));
  closure.last_arguments.insert(closure.last_arguments.end(), function->last_arguments.begin(),
                                function->last_arguments.end());
  if (closure.last_arguments.size() > kMostRelaxItems) call.fail("with too many arguments");
  call.result = std::move(made);
}

// (a function, its arguments …)
void invoke_closure(RelaxCall& call) {
  const FfiFunctionObject* function = as_function(call.at(1));
  if (function == nullptr) call.fail("argument 1 is no function");
  call.result = call.machine.call(*function, call.args.subspan(2));
}

constexpr NamedBuiltin kBuiltins[] = {
    {"vm.builtin.null_value", null_value},
    {"vm.builtin.copy", copy_value},
    {"vm.builtin.to_device", to_device},
    {"vm.builtin.alloc_shape_heap", alloc_shape_heap},
    {"vm.builtin.alloc_storage", alloc_storage},
    {"vm.builtin.alloc_tensor", alloc_tensor},
    {"vm.builtin.reshape", reshape},
    {"vm.builtin.ensure_zero_offset", ensure_zero_offset},
    {"runtime.TVMTensorCreateView", create_view},
    {"runtime.TVMArrayCreateView", create_view},  // its name up to TVM 0.21
    {"vm.builtin.shape_of", shape_of},
    {"vm.builtin.check_tensor_info", check_tensor_info},
    {"vm.builtin.check_shape_info", check_shape_info},
    {"vm.builtin.check_prim_value_info", check_prim_value_info},
    {"vm.builtin.check_tuple_info", check_tuple_info},
    {"vm.builtin.check_func_info", check_func_info},
    {"vm.builtin.match_shape", match_shape},
    {"vm.builtin.match_prim_value", match_prim_value},
    {"vm.builtin.make_shape", make_shape},
    {"vm.builtin.make_prim_value", make_prim_value},
    {"vm.builtin.make_tuple", make_tuple},
    {"vm.builtin.tuple_getitem", tuple_getitem},
    {"vm.builtin.tuple_reset_item", tuple_reset_item},
    {"vm.builtin.read_if_cond", read_if_cond},
    {"vm.builtin.tensor_to_shape", tensor_to_shape},
    {"vm.builtin.call_tir_dyn", call_tir_dyn},
    {"vm.builtin.make_closure", make_closure},
    {"vm.builtin.invoke_closure", invoke_closure},
};

struct LeftOut {
  std::string_view prefix;
  std::string_view reason;
};

// Of the functions that TVM 0.27 registers. The first that fits.
constexpr LeftOut kLeftOut[] = {
    {"vm.builtin.attention_kv_cache",
     "of paged caches, plain attention to sequences that are not forked is run"},
    {"vm.builtin.kv_state_fork", "sequences of paged caches are not forked here"},
    {"vm.builtin.kv_cache_disagg", "it is for several machines"},
    {"vm.builtin.distributed", "it is for several GPUs"},
    {"vm.builtin.rnn_state", "states of recurrent language models are for servers of them"},
    {"vm.builtin.sample_", "choosing among a language model's tokens is the application's"},
    {"vm.builtin.multinomial", "choosing among a language model's tokens is the application's"},
    {"vm.builtin.apply_", "choosing among a language model's tokens is the application's"},
    {"vm.builtin.tensor_cache", "it reads parameters from files of its own; give them as inputs"},
    {"vm.builtin.param_", "it reads parameters from files of its own; give them as inputs"},
    {"vm.builtin.cuda_graph", "there is the CPU only"},
    {"vm.builtin.memory_manager", "run_model has a memory management of its own"},
    {"vm.builtin.call_py_func", "it calls Python"},
    {"vm.builtin.get_py_func", "it calls Python"},
    {"vm.builtin.register_py_func", "it calls Python"},
    {"vm.builtin.clear_py_func_registry", "it calls Python"},
    {"vm.builtin.invoke_debug_func", "it calls Python"},
    {"vm.builtin.debug_print", "it calls Python"},
    {"runtime.disco", "it is for several GPUs"},
    {"tvm.contrib.random", "it draws random numbers, and its results could not be compared"},
    {"tvm.contrib.", "compile without external libraries"},
    {"vm.builtin.", "no model that an importer makes is known to call it"},
};

}  // namespace

RelaxBuiltin find_builtin(std::string_view name) {
  for (const std::span<const NamedBuiltin> functions :
       {std::span<const NamedBuiltin>(kBuiltins), run_functions(), cache_functions(),
        paged_cache_functions()}) {
    for (const NamedBuiltin& each : functions) {
      if (each.name == name) return each.function;
    }
  }
  return nullptr;
}

std::string_view why_left_out(std::string_view name) {
  const auto found = std::find_if(std::begin(kLeftOut), std::end(kLeftOut),
                                  [&](const LeftOut& l) { return name.starts_with(l.prefix); });
  return found == std::end(kLeftOut) ? std::string_view() : found->reason;
}

}  // namespace run_model
