// A library of functions of this program, and executables that call them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/loading/model_library.h"
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

// The third number of a shape heap becomes two less than the first.
inline int two_fewer(void* /*self*/, const FfiAny* args, std::int32_t /*count*/,
                     FfiAny* /*result*/) {
  auto* numbers = static_cast<std::int64_t*>(as_tensor(args[0])->data());
  numbers[2] = numbers[0] - 2;
  return 0;
}

// out = the last elements of a + b, as many as it has.
inline int add_last(void* self, const FfiAny* args, std::int32_t count, FfiAny* result) {
  FfiAny parts[3] = {args[0], args[1], args[2]};
  DLTensor tensors[3] = {tensor_in(args[0]), tensor_in(args[1]), tensor_in(args[2])};
  const std::int64_t skipped = tensors[0].shape[0] - tensors[2].shape[0];
  for (int i = 0; i < 3; ++i) {
    if (i < 2) tensors[i].data = static_cast<float*>(tensors[i].data) + skipped;
    tensors[i].shape = tensors[2].shape;
    parts[i].type = kFfiTensorPointer;
    parts[i].pointer = &tensors[i];
  }
  return add(self, parts, count, result);
}

// How many dimensions a tensor has.
inline int rank(void* /*self*/, const FfiAny* args, std::int32_t /*count*/, FfiAny* result) {
  *result = FfiValue::of_integer(tensor_in(args[0]).ndim);
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
    if (name == "rank") return rank;
    if (name == "two_fewer") return two_fewer;
    if (name == "add_last") return add_last;
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
  const std::string context =
      "ErrorContext(fn=main, loc=param[0], param=x, annotation=R.Tensor((rows,), "
      "dtype=\"float32\")) ";
  builder.begin("main", {"x", "y"}, 8);
  builder.call(2, "vm.builtin.alloc_shape_heap", {reg(kRelaxMachine), imm(2)});
  for (const std::int64_t input : {0, 1}) {
    builder.check_numbers(input, false, context);
    builder.call(
        kRelaxVoid, "vm.builtin.match_shape",
        {reg(input), reg(2), imm(1), imm(input == 0 ? 1 : 3), imm(0), con(builder.text(context))});
  }
  builder.call(kRelaxVoid, "twice", {reg(2)});
  builder.call(3, "vm.builtin.make_shape", {reg(2), imm(1), imm(1), imm(1)});
  builder.call(4, "vm.builtin.alloc_storage",
               {reg(kRelaxMachine), reg(3), imm(0), con(builder.float32())});
  builder.call(5, "vm.builtin.alloc_tensor", {reg(4), imm(0), reg(3), con(builder.float32())});
  builder.call(kRelaxVoid, "add", {reg(0), reg(1), reg(5)});
  builder.ret(5);
  return builder;
}

// An output of the sum of x and itself where `choice` is true, else of x and a constant.
inline ExecutableBuilder branching_executable() {
  ExecutableBuilder builder;
  const std::string context = "ErrorContext(fn=main)";
  builder.begin("main", {"choice", "x"}, 6);
  builder.call(kRelaxVoid, "vm.builtin.check_tensor_info",
               {reg(0), imm(0), con(builder.dtype(kFfiBoolType)), con(builder.text(context))});
  builder.check_numbers(1, true, context);
  builder.new_pair(3);
  builder.call(4, "vm.builtin.read_if_cond", {reg(0)});
  builder.branch(4, 3);
  builder.call(kRelaxVoid, "add", {reg(1), reg(1), reg(3)});
  builder.jump(2);
  builder.call(kRelaxVoid, "add", {reg(1), con(builder.ten_and_twenty()), reg(3)});
  builder.ret(3);
  return builder;
}

}  // namespace run_model::testing_relax
