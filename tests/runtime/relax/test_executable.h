// The bytes of Relax executables, put together word by word.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/relax/executable.h"
#include "tests/runtime/test_params.h"

namespace run_model::testing_relax {

using testing_params::put;

inline std::string bytes_of_text(const std::string& value) {
  std::string out;
  put<std::uint64_t>(out, value.size());
  return out + value;
}

// An argument of a call, in its word.
inline std::int64_t word(RelaxArgumentKind kind, std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value) & ((std::uint64_t{1} << 56) - 1);
  return static_cast<std::int64_t>(bits | static_cast<std::uint64_t>(kind) << 56);
}
inline std::int64_t reg(std::int64_t value) { return word(RelaxArgumentKind::kRegister, value); }
inline std::int64_t imm(std::int64_t value) { return word(RelaxArgumentKind::kImmediate, value); }
inline std::int64_t con(std::int64_t value) { return word(RelaxArgumentKind::kConstant, value); }
inline std::int64_t fun(std::int64_t value) { return word(RelaxArgumentKind::kFunction, value); }

class ExecutableBuilder {
 public:
  std::uint64_t magic = 0xD225DE2F4214151E;
  std::string version = "0.14";
  std::vector<std::string> scopes;  // of constant 0, 1 …

  // Adds a compiled function or a builtin, and returns its number.
  std::int64_t packed(const std::string& name) { return add_function(0, name, 0, 0, 0, 0, {}); }

  // Begins a function of instructions; it goes as far as to where the next one begins.
  std::int64_t begin(const std::string& name, std::vector<std::string> parameters,
                     std::int64_t registers) {
    const auto at = static_cast<std::int64_t>(offsets.size());
    const auto count = static_cast<std::int64_t>(parameters.size());
    return add_function(1, name, at, at, count, registers, std::move(parameters));
  }

  // The number of the constant, which is added where there is none like it.
  std::int64_t constant(const std::string& bytes) {
    const auto known = std::find(constants.begin(), constants.end(), bytes);
    const std::int64_t number = known - constants.begin();
    if (known == constants.end()) constants.push_back(bytes);
    return number;
  }
  std::int64_t text(const std::string& value) { return constant(type(65) + bytes_of_text(value)); }
  std::int64_t shape(const std::vector<std::int64_t>& dims) {
    std::string out = type(69);
    put<std::uint64_t>(out, dims.size());
    for (const std::int64_t dim : dims) put(out, dim);
    return constant(out);
  }
  std::int64_t dtype(DLDataType value) {
    std::string out = type(5);
    put(out, value);
    return constant(out);
  }
  std::int64_t float32() { return dtype({kDLFloat, 32, 1}); }
  std::int64_t tensor(const std::vector<std::int64_t>& dims, DLDataType dtype,
                      const std::string& data) {
    return constant(type(70) + testing_params::tensor_record(dims, dtype, data));
  }

  void call(std::int64_t target, std::int64_t function, const std::vector<std::int64_t>& args) {
    instruction({1, target, function, static_cast<std::int64_t>(args.size())});
    words.insert(words.end(), args.begin(), args.end());
  }
  // The same of a compiled function or a builtin, which is added where it is not there yet.
  void call(std::int64_t target, const std::string& name, const std::vector<std::int64_t>& args) {
    const auto known = std::find_if(functions.begin(), functions.end(),
                                    [&](const Function& f) { return f.name == name; });
    call(target, known == functions.end() ? packed(name) : known - functions.begin(), args);
  }
  // Checks that a register holds a float32 tensor of one dimension; where `pair`, of two numbers.
  void check_numbers(std::int64_t at, bool pair, const std::string& context) {
    call(kRelaxVoid, "vm.builtin.check_tensor_info",
         {reg(at), imm(1), con(float32()), con(text(context))});
    if (pair) match_pair(at, context);
  }
  // Checks that the shape in a register, or that of the tensor there, is [2].
  void match_pair(std::int64_t at, const std::string& context) {
    call(kRelaxVoid, "vm.builtin.match_shape",
         {reg(at), reg(kRelaxVoid), imm(1), imm(0), imm(2), con(text(context))});
  }
  // A new tensor of two float32 numbers, with its memory in the register before.
  void new_pair(std::int64_t at) {
    call(at - 1, "vm.builtin.alloc_storage",
         {reg(kRelaxMachine), con(shape({8})), imm(0), con(float32())});
    call(at, "vm.builtin.alloc_tensor", {reg(at - 1), imm(0), con(shape({2})), con(float32())});
  }
  // A constant of the two numbers 10 and 20.
  std::int64_t ten_and_twenty() {
    const float values[] = {10, 20};
    return tensor({2}, {kDLFloat, 32, 1},
                  std::string(reinterpret_cast<const char*>(values), sizeof(values)));
  }

  void ret(std::int64_t value) { instruction({2, value}); }
  void jump(std::int64_t offset) { instruction({3, offset}); }
  void branch(std::int64_t condition, std::int64_t offset) { instruction({4, condition, offset}); }
  void instruction(const std::vector<std::int64_t>& content) {
    offsets.push_back(static_cast<std::int64_t>(words.size()));
    words.insert(words.end(), content.begin(), content.end());
    for (Function& function : functions) {
      if (&function == &functions[last_bytecode_]) {
        function.end = static_cast<std::int64_t>(offsets.size());
      }
    }
  }

  std::string bytes() const {
    std::string out;
    put(out, magic);
    out += bytes_of_text(version);
    put<std::uint64_t>(out, functions.size());
    for (const Function& function : functions) {
      put(out, function.kind);
      out += bytes_of_text(function.name);
      for (const std::int64_t number :
           {function.start, function.end, function.arguments, function.registers}) {
        put(out, number);
      }
      put<std::uint64_t>(out, function.parameters.size());
      for (const std::string& name : function.parameters) out += bytes_of_text(name);
    }
    if (magic == 0xD225DE2F4214151E) {
      put<std::uint64_t>(out, scopes.size());
      for (std::size_t i = 0; i < scopes.size(); ++i) {
        put(out, static_cast<std::int64_t>(i));
        out += bytes_of_text(scopes[i]);
      }
    }
    put<std::uint64_t>(out, constants.size());
    for (const std::string& constant : constants) out += constant;
    for (const std::vector<std::int64_t>* list : {&offsets, &words}) {
      put<std::uint64_t>(out, list->size());
      for (const std::int64_t number : *list) put(out, number);
    }
    return out;
  }

  struct Function {
    std::int32_t kind;
    std::string name;
    std::int64_t start, end, arguments, registers;
    std::vector<std::string> parameters;
  };
  std::vector<Function> functions;
  std::vector<std::string> constants;
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> words;

 private:
  static std::string type(std::int32_t number) {
    std::string out;
    put(out, number);
    return out;
  }

  std::int64_t add_function(std::int32_t kind, const std::string& name, std::int64_t start,
                            std::int64_t end, std::int64_t arguments, std::int64_t registers,
                            std::vector<std::string> parameters) {
    if (kind == 1) last_bytecode_ = functions.size();
    functions.push_back({kind, name, start, end, arguments, registers, std::move(parameters)});
    return static_cast<std::int64_t>(functions.size()) - 1;
  }

  std::size_t last_bytecode_ = 0;
};

// out = add(x, constant), x and the constant of [2] float32.
inline ExecutableBuilder small_executable() {
  ExecutableBuilder builder;
  builder.begin("main", {"x"}, 4);
  builder.check_numbers(0, true,
                        "ErrorContext(fn=main, loc=param[0], param=x, "
                        "annotation=R.Tensor((2,), dtype=\"float32\")) ");
  builder.new_pair(2);
  builder.call(kRelaxVoid, "add", {reg(0), con(builder.ten_and_twenty()), reg(2)});
  builder.ret(2);
  return builder;
}

inline RelaxExecutable parse(const std::string& bytes) {
  return parse_relax_executable({std::as_bytes(std::span(bytes)), 0}, "'model.so'");
}

}  // namespace run_model::testing_relax
