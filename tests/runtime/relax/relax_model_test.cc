#include "runtime/relax/relax_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "runtime/relax/machine.h"
#include "tests/error_matcher.h"
#include "tests/runtime/relax/test_executable.h"

namespace run_model {
namespace {

using testing::ElementsAre;
using testing_relax::con;
using testing_relax::ExecutableBuilder;
using testing_relax::imm;
using testing_relax::parse;
using testing_relax::reg;
using testing_relax::small_executable;

// out = a + b, of float32.
int add(void* /*self*/, const FfiAny* args, std::int32_t count, FfiAny* /*result*/) {
  if (count < 3) return -1;
  const auto values = [&](int i) { return static_cast<float*>(as_tensor(args[i])->data()); };
  const std::int64_t size = as_tensor(args[2])->tensor.shape[0];
  for (std::int64_t i = 0; i < size; ++i) values(2)[i] = values(0)[i] + values(1)[i];
  return 0;
}

// The second number of a shape heap becomes twice the first.
int twice(void* /*self*/, const FfiAny* args, std::int32_t /*count*/, FfiAny* /*result*/) {
  auto* numbers = static_cast<std::int64_t*>(as_tensor(args[0])->data());
  numbers[1] = 2 * numbers[0];
  return 0;
}

class FunctionLibrary : public ModelLibrary {
 public:
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
};

RelaxTrace trace(const std::string& bytes, std::vector<std::vector<std::int64_t>> shapes = {{2}}) {
  static const FunctionLibrary library;
  const RelaxExecutable executable = parse(bytes);
  const RelaxFunction& function = choose_function(executable, "", "'model.so'");
  return trace_function(executable, function, input_forms(executable, function), shapes, library);
}

TEST(RelaxModelTest, MakesAGraphOfAStaticFunction) {
  const std::string bytes = small_executable().bytes();
  const RelaxTrace made = trace(bytes);
  ASSERT_EQ(made.graph.nodes.size(), 3u);
  EXPECT_EQ(made.graph.nodes[0].name, "x");
  EXPECT_EQ(made.graph.nodes[1].name, "constant_4");
  EXPECT_EQ(made.graph.nodes[2].function, "add");
  EXPECT_THAT(made.graph.nodes[2].inputs, ElementsAre(0, 1));
  EXPECT_TRUE(made.graph.nodes[2].arguments.empty());
  EXPECT_THAT(made.graph.inputs, ElementsAre(0, 1));
  EXPECT_THAT(made.graph.outputs, ElementsAre(2));
  EXPECT_THAT(made.graph.entries[2].shape, ElementsAre(2));
  ASSERT_EQ(made.constants.size(), 1u);
  EXPECT_EQ(made.constants[0].name, "constant_4");
}

TEST(RelaxModelTest, RefusesShapesThatDoNotFit) {
  const std::string bytes = small_executable().bytes();
  EXPECT_THAT([&] { trace(bytes, {{3}}); },
              ThrowsError(ErrorKind::kMismatch, {"param=x", "is 3, expected 2"}));
}

TEST(RelaxModelTest, RefusesFunctionsThatNobodyHas) {
  ExecutableBuilder builder = small_executable();
  builder.functions[4].name = "fused_other";
  EXPECT_THAT([&] { trace(builder.bytes()); },
              ThrowsError(ErrorKind::kIncompatible, {"functions.so", "'fused_other'"}));
  builder.functions[4].name = "vm.builtin.paged_attention_kv_cache_create";
  EXPECT_THAT([&] { trace(builder.bytes()); },
              ThrowsError(ErrorKind::kIncompatible, {"_create'", "language models"}));
}

TEST(RelaxModelTest, NamesTheFunctionsThereAre) {
  const std::string bytes = small_executable().bytes();
  const RelaxExecutable executable = parse(bytes);
  EXPECT_EQ(choose_function(executable, "main", "").name, "main");
  EXPECT_THAT([&] { choose_function(executable, "add", "library 'm.so'"); },
              ThrowsError(ErrorKind::kMismatch, {"m.so", "'add'", "only 'main'"}));
}

// Two inputs of one symbolic dimension, and an output of twice as many elements.
ExecutableBuilder dynamic_executable() {
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

TEST(RelaxModelTest, FollowsSymbolicDimensions) {
  const std::string bytes = dynamic_executable().bytes();
  const RelaxExecutable executable = parse(bytes);
  const auto forms = input_forms(executable, *executable.find("main"));
  ASSERT_EQ(forms.size(), 2u);
  EXPECT_EQ(form_name(forms[0]), "float32 [rows]");
  EXPECT_FALSE(forms[1].is_static());
  EXPECT_THAT(trace(bytes, {{3}, {3}}).graph.entries.back().shape, ElementsAre(6));
  EXPECT_THAT(trace(bytes, {{5}, {5}}).graph.entries.back().shape, ElementsAre(10));
  EXPECT_THAT([&] { trace(bytes, {{3}, {4}}); },
              ThrowsError(ErrorKind::kMismatch, "dimension 0 of [4] is 4, but 3 elsewhere"));
}

}  // namespace
}  // namespace run_model
