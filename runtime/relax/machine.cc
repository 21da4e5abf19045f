#include "runtime/relax/machine.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <run_model/dtype.h>
#include "base/text.h"
#include "runtime/relax/functions/builtins.h"
#include "runtime/relax/functions/runtime_functions.h"
#include "runtime/relax/tracer.h"

namespace run_model {
namespace {

// Executables of models call a few functions in each other, or one itself for each step of a
// sequence; more is a circle.
constexpr std::size_t kDeepestCall = 1000;

constexpr char kCompiledPrefix[] = "__vmtir__";

thread_local RelaxMachine* machine_of_thread = nullptr;

class CurrentMachine {
 public:
  explicit CurrentMachine(RelaxMachine* machine)
      : previous_(std::exchange(machine_of_thread, machine)) {}
  ~CurrentMachine() { machine_of_thread = previous_; }
  CurrentMachine(const CurrentMachine&) = delete;
  CurrentMachine& operator=(const CurrentMachine&) = delete;

 private:
  RelaxMachine* previous_;
};

class Deeper {
 public:
  explicit Deeper(std::size_t& depth) : depth_(depth) {
    if (depth_ >= kDeepestCall) {
      throw Error(ErrorKind::kModel, "the model's functions call each other more than " +
                                         std::to_string(kDeepestCall) + " deep");
    }
    ++depth_;
  }
  ~Deeper() { --depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  std::size_t& depth_;
};

// Of compiled functions that call each other the innermost is named.
Error failure_of(const std::string& function) {
  const std::string& reason = last_packed_error();
  const bool named = reason.starts_with("function '") && reason.find("' failed: ") != reason.npos;
  return Error(last_packed_error_kind(),
               (named ? "" : "function " + in_quotes(function) + " failed: ") + reason);
}

// How compiled code calls one of our functions.
int call_from_compiled(void* self, const FfiAny* args, std::int32_t count, FfiAny* result) {
  try {
    auto& function = *static_cast<FfiFunctionObject*>(static_cast<FfiObject*>(self));
    // Functions that are called in the same way need no machine.
    if (function.machine == nullptr && function.compiled != nullptr) {
      return function.compiled(nullptr, args, count, result);
    }
    RelaxMachine* machine = function.machine != nullptr ? function.machine : machine_of_thread;
    if (machine == nullptr) {
      set_last_packed_error(in_quotes(function.name) + " is called while no model runs");
      return -1;
    }
    FfiValue value = machine->call(function, {args, static_cast<std::size_t>(count)});
    *result = value.release();
    return 0;
  } catch (...) {
    set_last_packed_exception();
    return -1;
  }
}

}  // namespace

void expect_traced(const FfiAny& value) {
  if (value.type == kFfiUntraced) {
    throw NotTraceable("its course depends on what a compiled function gives");
  }
}

FfiValue make_relax_function(const ModelLibrary& library, const std::string& name) {
  FfiValue value = make_function(call_from_compiled, name);
  FfiFunctionObject& function = *as_function(value);
  function.compiled = library.find_ffi(name);
  if (function.compiled == nullptr) function.compiled = find_runtime_function(name);
  if (function.compiled == nullptr) function.builtin = find_builtin(name);
  if (function.compiled != nullptr || function.builtin != nullptr) return value;
  throw unknown_function("library " + path_in_quotes(library.path()), name);
}

Error unknown_function(const std::string& source, const std::string& name) {
  const std::string_view reason = why_left_out(name);
  return Error(
      ErrorKind::kIncompatible,
      source + " calls the function " + in_quotes(name) + ", which neither it nor run_model has" +
          (reason.empty() ? "" : ": " + std::string(reason)),
      "compile the model from operators that TVM generates code for, with target \"llvm\"");
}

RelaxMachine::RelaxMachine(const RelaxExecutable& executable, const ModelLibrary& library,
                           Tracer* tracer)
    : executable_(executable),
      library_(library),
      tracer_(tracer),
      memory_(std::make_shared<Memory>()) {
  functions_.reserve(executable.functions.size());
  for (std::size_t i = 0; i < executable.functions.size(); ++i) functions_.push_back(resolve(i));
  constants_.reserve(executable.constants.size());
  for (std::size_t i = 0; i < executable.constants.size(); ++i) {
    constants_.push_back(constant(i));
  }
}

FfiValue RelaxMachine::resolve(std::size_t number) {
  const RelaxFunction& described = executable_.functions[number];
  if (described.kind == RelaxFunctionKind::kPacked) {
    return make_relax_function(library_, described.name);
  }
  FfiValue value = make_function(call_from_compiled, described.name);
  FfiFunctionObject& function = *as_function(value);
  function.machine = this;
  function.index = number;
  if (described.kind == RelaxFunctionKind::kCompiled) {
    function.compiled = library_.find_ffi(kCompiledPrefix + described.name);
    if (function.compiled == nullptr) {
      throw Error(ErrorKind::kMismatch, "library " + path_in_quotes(library_.path()) +
                                            " lacks the code of its function " +
                                            in_quotes(described.name));
    }
  }
  return value;
}

FfiValue RelaxMachine::constant(std::size_t number) {
  const RelaxConstant& constant = executable_.constants[number];
  if (const auto* tensor = std::get_if<Param>(&constant)) {
    if (tracer_ != nullptr) return tracer_->constant(number);
    DLDataType dtype = tensor->dtype;
    if (executable_.bool_is_a_type && same_dtype(dtype, {kDLUInt, 1, 1})) dtype = kFfiBoolType;
    FfiValue copy = allocate_tensor(tensor->shape, dtype);
    if (!tensor->data.empty()) {
      std::memcpy(as_tensor(copy)->data(), tensor->data.data(), tensor->data.size());
      if (executable_.file != nullptr) {
        executable_.file->release(
            static_cast<std::size_t>(tensor->data.data() - executable_.file->bytes().data()),
            tensor->data.size());
      }
    }
    return copy;
  }
  if (const auto* shape = std::get_if<RelaxShape>(&constant))
    return FfiValue::of_shape(shape->dims);
  if (const auto* dtype = std::get_if<DLDataType>(&constant)) return FfiValue::of_dtype(*dtype);
  if (const auto* text = std::get_if<std::string>(&constant)) return FfiValue::of_text(*text);
  if (const auto* real = std::get_if<double>(&constant)) return FfiValue::of_real(*real);
  return FfiValue::of_integer(std::get<std::int64_t>(constant));
}

FfiValue RelaxMachine::allocate_storage(std::size_t bytes) {
  const auto allocated = [&] {
    const std::lock_guard lock(memory_->mutex);
    return memory_->blocks.allocate(bytes);
  };
  void* data = allocated();
  if (data == nullptr) {
    throw Error(ErrorKind::kIncompatible, "the system refused " + std::to_string(bytes) +
                                              " bytes of memory for the model's tensors");
  }
  std::shared_ptr<void> owner(data, [memory = memory_](void* block) {
    const std::lock_guard lock(memory->mutex);
    memory->blocks.free(block);
  });
  return make_storage(std::move(owner), bytes, 0);
}

std::size_t RelaxMachine::held_bytes() const {
  const std::lock_guard lock(memory_->mutex);
  return memory_->blocks.held_bytes();
}

FfiValue RelaxMachine::allocate_tensor(std::span<const std::int64_t> shape, DLDataType dtype) {
  const FfiValue storage = allocate_storage(tensor_bytes(shape, dtype));
  return make_tensor(shape, dtype, as_storage(storage)->data, as_storage(storage)->owner);
}

FfiValue RelaxMachine::call(const RelaxFunction& function, std::span<const FfiAny> arguments) {
  const CurrentMachine current(this);
  const Deeper deeper(depth_);
  if (arguments.size() != function.parameters) {
    throw Error(ErrorKind::kMismatch, "function " + in_quotes(function.name) + " takes " +
                                          std::to_string(function.parameters) + " arguments, but " +
                                          std::to_string(arguments.size()) + " were given");
  }
  if (tracer_ != nullptr && depth_ > 1) tracer_->enter(function.name);
  return function.kind == RelaxFunctionKind::kCompiled ? run_compiled(function, arguments)
                                                       : run(function, arguments);
}

FfiValue RelaxMachine::call(const FfiFunctionObject& function, std::span<const FfiAny> arguments) {
  if (function.machine != nullptr) {
    return function.machine->call(executable_.functions[function.index], arguments);
  }
  if (function.compiled != nullptr) return call_compiled(function, arguments);
  if (function.bound.type != kFfiNone) {
    std::vector<FfiAny> all(arguments.begin(), arguments.end());
    all.insert(all.end(), function.last_arguments.begin(), function.last_arguments.end());
    return call(*as_function(function.bound), all);
  }
  RelaxCall call{*this, function.name, arguments};
  function.builtin(call);
  return std::move(call.result);
}

FfiValue RelaxMachine::call_compiled(const FfiFunctionObject& function,
                                     std::span<const FfiAny> arguments) {
  if (tracer_ != nullptr) {
    for (const FfiAny& argument : arguments) {
      expect_traced(argument);
      const FfiTensorObject* tensor = as_tensor(argument);
      if (tensor == nullptr || tensor->has_values()) continue;
      tracer_->call(function.name, arguments);
      FfiValue untraced;
      untraced.type = kFfiUntraced;
      return untraced;
    }
  }
  FfiAny result;
  clear_last_packed_error();
  if (function.compiled(nullptr, arguments.data(), static_cast<std::int32_t>(arguments.size()),
                        &result) != 0) {
    throw failure_of(function.name);
  }
  return FfiValue::adopt(result);
}

FfiAny RelaxMachine::argument(const RelaxArgument& argument,
                              const std::vector<FfiValue>& registers) const {
  FfiAny any;
  switch (argument.kind) {
    case RelaxArgumentKind::kRegister:
      if (argument.value == kRelaxMachine) {
        any.type = kFfiPointer;
        any.pointer = const_cast<RelaxMachine*>(this);
      } else if (argument.value != kRelaxVoid) {
        any = registers[static_cast<std::size_t>(argument.value)];
      }
      break;
    case RelaxArgumentKind::kImmediate:
      any.type = kFfiInt;
      any.integer = argument.value;
      break;
    case RelaxArgumentKind::kConstant:
      any = constants_[static_cast<std::size_t>(argument.value)];
      break;
    case RelaxArgumentKind::kFunction:
      any = functions_[static_cast<std::size_t>(argument.value)];
      break;
  }
  return any;
}

// The executable was verified: registers, functions and jumps are where they may be.
FfiValue RelaxMachine::run(const RelaxFunction& function, std::span<const FfiAny> arguments) {
  std::vector<FfiValue> registers(function.registers);
  for (std::size_t i = 0; i < arguments.size(); ++i) registers[i] = FfiValue(arguments[i]);
  std::vector<FfiAny> call_arguments;
  std::size_t at = function.start;
  while (true) {
    const RelaxInstruction& instruction = executable_.instructions[at];
    switch (instruction.opcode) {
      case RelaxOpcode::kCall: {
        call_arguments.clear();
        for (const RelaxArgument& each : instruction.arguments) {
          call_arguments.push_back(argument(each, registers));
        }
        FfiValue result = call(*as_function(functions_[instruction.function]), call_arguments);
        if (instruction.target != kRelaxVoid) {
          registers[static_cast<std::size_t>(instruction.target)] = std::move(result);
        }
        ++at;
        break;
      }
      case RelaxOpcode::kReturn:
        if (instruction.target == kRelaxVoid) return {};
        return std::move(registers[static_cast<std::size_t>(instruction.target)]);
      case RelaxOpcode::kGoto:
        at += static_cast<std::size_t>(instruction.offset);
        break;
      case RelaxOpcode::kIf: {
        const FfiValue& condition = registers[static_cast<std::size_t>(instruction.target)];
        expect_traced(condition);
        if (condition.type != kFfiInt && condition.type != kFfiBool) {
          throw Error(ErrorKind::kFormat, "function " + in_quotes(function.name) + " decides by " +
                                              std::string(ffi_type_name(condition)) +
                                              ", expected a bool");
        }
        at += condition.integer != 0 ? 1 : static_cast<std::size_t>(instruction.offset);
        break;
      }
    }
  }
}

// The compiled function works on our registers, constants and functions; its result is left in the
// register behind the parameters.
FfiValue RelaxMachine::run_compiled(const RelaxFunction& function,
                                    std::span<const FfiAny> arguments) {
  if (tracer_ != nullptr) {
    throw NotTraceable("function " + in_quotes(function.name) + " is compiled as a whole");
  }
  std::vector<FfiValue> registers(std::max(function.registers, function.parameters + 1));
  for (std::size_t i = 0; i < arguments.size(); ++i) registers[i] = FfiValue(arguments[i]);
  void* lists[] = {this, registers.data(), constants_.data(), functions_.data()};
  FfiAny pointers[4];
  for (std::size_t i = 0; i < 4; ++i) {
    pointers[i].type = kFfiPointer;
    pointers[i].pointer = lists[i];
  }
  const auto index = static_cast<std::size_t>(&function - executable_.functions.data());
  FfiAny result;
  clear_last_packed_error();
  if (as_function(functions_[index])->compiled(nullptr, pointers, 4, &result) != 0) {
    throw failure_of(function.name);
  }
  return std::move(registers[function.parameters]);
}

}  // namespace run_model
