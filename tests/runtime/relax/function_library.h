// A library of functions of this program, and executables that call them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/model_library.h"
#include "runtime/relax/values.h"
#include "tests/runtime/relax/test_executable.h"

namespace run_model::testing_relax {

// A tensor's values, in either form in which compiled functions get it.
inline const DLTensor& tensor_in(const FfiAny& any) {
  return any.type == kFfiTensorPointer ? *static_cast<const DLTensor*>(any.pointer)
                                       : as_tensor(any)->tensor;
}

// out = a + b, of float32.
inline int add(void* /*self*/, const FfiAny* args, std::int32_t count, FfiAny* /*result*/) {
  if (count < 3) return -1;
  const auto values = [&](int i) { return static_cast<float*>(tensor_in(args[i]).data); };
  const std::int64_t size = tensor_in(args[0]).shape[0];
  for (std::int64_t i = 0; i < size; ++i) values(2)[i] = values(0)[i] + values(1)[i];
  return 0;
}

// The second number of a shape heap becomes twice the first.
inline int twice(void* /*self*/, const FfiAny* args, std::int32_t /*count*/, FfiAny* /*result*/) {
  auto* numbers = static_cast<std::int64_t*>(as_tensor(args[0])->data());
  numbers[1] = 2 * numbers[0];
  return 0;
}

class FunctionLibrary : public ModelLibrary {
 public:
  FunctionLibrary() = default;
  // With an executable in it.
  explicit FunctionLibrary(std::string bytes)
      : bytes_(std::move(bytes)),
        executable_(std::make_shared<const RelaxExecutable>(parse(bytes_))) {}

  std::shared_ptr<const RelaxExecutable> relax_executable() const override { return executable_; }
  const std::filesystem::path& path() const override { return path_; }
  PackedFunction find(const std::string& /*name*/) const override { return nullptr; }
  const std::optional<EmbeddedGraph>& embedded_graph() const override { return none_; }
  bool speaks_ffi() const override { return true; }
  FfiFunction find_ffi(const std::string& name) const override {
    if (name == "add") return add;
    return name == "twice" ? twice : nullptr;
  }

 private:
  std::filesystem::path path_ = "functions.so";
  std::optional<EmbeddedGraph> none_;
  std::string bytes_;
  std::shared_ptr<const RelaxExecutable> executable_;
};

// Two inputs of one symbolic dimension, and an output of twice as many elements.
inline ExecutableBuilder dynamic_executable() {
  ExecutableBuilder builder;
  const std::int64_t heap = builder.packed("vm.builtin.alloc_shape_heap");
  const std::int64_t check = builder.packed("vm.builtin.check_tensor_info");
  const std::int64_t match = builder.packed("vm.builtin.match_shape");
  const std::int64_t make = builder.packed("vm.builtin.make_shape");
  const std::int64_t storage = builder.packed("vm.builtin.alloc_storage");
  const std::int64_t tensor = builder.packed("vm.builtin.alloc_tensor");
  const std::int64_t twice_number = builder.packed("twice");
  const std::int64_t add_number = builder.packed("add");
  const std::int64_t float32 = builder.dtype({kDLFloat, 32, 1});
  const std::int64_t context =
      builder.text("ErrorContext(fn=main, loc=param[0], param=x, annotation=R.Tensor((rows,), "
                   "dtype=\"float32\")) ");
  builder.begin("main", {"x", "y"}, 8);
  builder.call(2, heap, {reg(kRelaxMachine), imm(2)});
  for (const std::int64_t input : {0, 1}) {
    builder.call(kRelaxVoid, check, {reg(input), imm(1), con(float32), con(context)});
    builder.call(kRelaxVoid, match,
                 {reg(input), reg(2), imm(1), imm(input == 0 ? 1 : 3), imm(0), con(context)});
  }
  builder.call(kRelaxVoid, twice_number, {reg(2)});
  builder.call(3, make, {reg(2), imm(1), imm(1), imm(1)});
  builder.call(4, storage, {reg(kRelaxMachine), reg(3), imm(0), con(float32)});
  builder.call(5, tensor, {reg(4), imm(0), reg(3), con(float32)});
  builder.call(kRelaxVoid, add_number, {reg(0), reg(1), reg(5)});
  builder.ret(5);
  return builder;
}

// An output of the sum of x and itself where `choice` is true, else of x and a constant.
inline ExecutableBuilder branching_executable() {
  ExecutableBuilder builder;
  const std::int64_t check = builder.packed("vm.builtin.check_tensor_info");
  const std::int64_t match = builder.packed("vm.builtin.match_shape");
  const std::int64_t decide = builder.packed("vm.builtin.read_if_cond");
  const std::int64_t storage = builder.packed("vm.builtin.alloc_storage");
  const std::int64_t tensor = builder.packed("vm.builtin.alloc_tensor");
  const std::int64_t add_number = builder.packed("add");
  const std::int64_t float32 = builder.dtype({kDLFloat, 32, 1});
  const std::int64_t truth = builder.dtype(kFfiBoolType);
  const std::int64_t context = builder.text("ErrorContext(fn=main)");
  const std::int64_t bytes = builder.shape({8});
  const std::int64_t shape = builder.shape({2});
  const float values[] = {10, 20};
  const std::int64_t constant = builder.tensor(
      {2}, {kDLFloat, 32, 1}, std::string(reinterpret_cast<const char*>(values), sizeof(values)));
  builder.begin("main", {"choice", "x"}, 6);
  builder.call(kRelaxVoid, check, {reg(0), imm(0), con(truth), con(context)});
  builder.call(kRelaxVoid, check, {reg(1), imm(1), con(float32), con(context)});
  builder.call(kRelaxVoid, match, {reg(1), reg(kRelaxVoid), imm(1), imm(0), imm(2), con(context)});
  builder.call(2, storage, {reg(kRelaxMachine), con(bytes), imm(0), con(float32)});
  builder.call(3, tensor, {reg(2), imm(0), con(shape), con(float32)});
  builder.call(4, decide, {reg(0)});
  builder.branch(4, 3);
  builder.call(kRelaxVoid, add_number, {reg(1), reg(1), reg(3)});
  builder.jump(2);
  builder.call(kRelaxVoid, add_number, {reg(1), con(constant), reg(3)});
  builder.ret(3);
  return builder;
}

}  // namespace run_model::testing_relax
