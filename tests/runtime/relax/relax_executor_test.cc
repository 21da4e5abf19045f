// Executors of Relax executables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include <run_model/debug_executor.h>
#include "runtime/relax/relax_source.h"
#include "tests/has_elements.h"
#include "tests/runtime/relax/function_library.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing::Each;
using testing_relax::branching_executable;
using testing_relax::con;
using testing_relax::dynamic_executable;
using testing_relax::ExecutableBuilder;
using testing_relax::FunctionLibrary;
using testing_relax::imm;
using testing_relax::reg;
using testing_relax::small_executable;

DebugExecutor executor_of(const ExecutableBuilder& builder, const ExecutorOptions& options = {}) {
  return DebugExecutor(std::make_shared<FunctionLibrary>(builder.bytes()), options);
}

Tensor floats(const std::vector<float>& values) {
  Tensor tensor = Tensor::empty({static_cast<std::int64_t>(values.size())}, {kDLFloat, 32, 1});
  std::copy(values.begin(), values.end(), tensor.elements<float>().begin());
  return tensor;
}

std::vector<float> floats_of(const Tensor& tensor) {
  const auto elements = tensor.elements<float>();
  return {elements.begin(), elements.end()};
}

TEST(RelaxExecutorTest, RunsAStaticModelAsAGraph) {
  DebugExecutor executor = executor_of(small_executable());
  ASSERT_EQ(executor.inputs().size(), 1u);
  EXPECT_EQ(executor.inputs()[0].name, "x");
  EXPECT_TRUE(executor.inputs()[0].symbols.empty());
  ASSERT_EQ(executor.nodes().size(), 1u);
  EXPECT_EQ(executor.nodes()[0].function, "add");
  EXPECT_EQ(executor.memory().params_mapped + executor.memory().params_copied, 8u);
  executor.set_input("x", floats({1, 2}));
  executor.run();
  EXPECT_TRUE(has_elements(floats_of(executor.output(0)), {11, 22}));
  EXPECT_TRUE(throws_error([&] { executor.set_input("x", floats({1, 2, 3})); },
                           ErrorKind::kMismatch, "float32 [2]"));
}

TEST(RelaxExecutorTest, RefusesAFunctionThatIsNotThere) {
  ExecutorOptions options;
  options.function = "other";
  EXPECT_TRUE(throws_error([&] { executor_of(small_executable(), options); }, ErrorKind::kMismatch,
                           {"'other'", "only 'main'"}));
}

TEST(RelaxExecutorTest, TakesInputsOfAnyShapeThatFits) {
  DebugExecutor executor = executor_of(dynamic_executable());
  ASSERT_EQ(executor.inputs().size(), 2u);
  EXPECT_TRUE(has_elements(executor.inputs()[1].symbols, {"rows"}));
  for (const std::size_t size : {3, 5, 3, 1, 2, 4, 6, 7, 5}) {
    executor.set_input("x", floats(std::vector<float>(size, 1)));
    executor.set_input("y", floats(std::vector<float>(size, 10)));
    executor.run();
    ASSERT_EQ(executor.output(0).shape(), std::vector<std::int64_t>{2 * std::int64_t(size)});
    const Tensor sum = executor.output(0);
    std::vector<float> values = floats_of(sum);
    values.resize(size);  // the function writes no more
    EXPECT_THAT(values, Each(11));
    EXPECT_EQ(executor.inputs()[0].shape, std::vector<std::int64_t>{std::int64_t(size)});
    EXPECT_EQ(executor.nodes().back().outputs[0].shape, sum.shape());
  }
}

TEST(RelaxExecutorTest, TellsContradictionsBetweenInputs) {
  DebugExecutor executor = executor_of(dynamic_executable());
  executor.set_input("x", floats({1, 2, 3}));
  executor.set_input("y", floats({1, 2}));
  EXPECT_TRUE(
      throws_error([&] { executor.run(); }, ErrorKind::kMismatch, {"'x' [3]", "'y' [2]", "rows"}));
  // The one that fits mends it, and what waited is used.
  executor.set_input("y", floats({10, 20, 30}));
  executor.run();
  EXPECT_THAT(floats_of(executor.output(0)).front(), 11);
  EXPECT_TRUE(
      throws_error([&] { executor.set_input("x", Tensor::empty({2, 2}, {kDLFloat, 32, 1})); },
                   ErrorKind::kMismatch, "input 'x' is float32 [rows]"));
}

TEST(RelaxExecutorTest, ReadsInputsWhereTheyAreAlsoAfterAnotherShape) {
  DebugExecutor executor = executor_of(dynamic_executable());
  const Tensor x = floats({1, 2, 3}), y = floats({10, 20, 30});
  executor.set_input_zero_copy(0, x);
  executor.set_input_zero_copy(1, y);
  executor.run();
  EXPECT_EQ(floats_of(executor.output(0))[2], 33);
  x.elements<float>()[2] = 4;
  executor.run();
  EXPECT_EQ(floats_of(executor.output(0))[2], 34);
  for (std::size_t i = 0; i < 2; ++i) executor.set_input(i, floats({1, 1}));
  executor.run();
  for (std::size_t i = 0; i < 2; ++i) executor.set_input(i, floats({5, 5, 5}));
  executor.run();
  EXPECT_EQ(floats_of(executor.output(0))[2], 10);
  EXPECT_TRUE(has_elements(floats_of(x), {1, 2, 4}));
}

TEST(RelaxExecutorTest, InterpretsWhatDependsOnValues) {
  DebugExecutor executor = executor_of(branching_executable());
  ASSERT_EQ(executor.nodes().size(), 1u);
  ASSERT_EQ(executor.outputs().size(), 1u);  // asked for before the first run
  EXPECT_EQ(executor.outputs()[0].shape, std::vector<std::int64_t>{2});
  Tensor choice = Tensor::empty({}, {kDLUInt, 1, 1});
  executor.set_input("x", floats({1, 2}));
  EXPECT_TRUE(throws_error([&] { executor.run(); }, ErrorKind::kMismatch, "'choice'"));
  for (const bool truth : {true, false, true}) {
    *static_cast<std::uint8_t*>(choice.data()) = truth ? 1 : 0;
    executor.set_input("choice", choice);
    executor.run();
    const float first = truth ? 2 : 11, second = truth ? 4 : 22;
    EXPECT_TRUE(has_elements(floats_of(executor.output(0)), {first, second}));
  }
}

TEST(RelaxExecutorTest, OutputsOfAnInterpretedModelOutliveIt) {
  ExecutableBuilder builder;  // main(choice, x) = x, or 2 * x
  builder.begin("main", {"choice", "x"}, 5);
  builder.check_numbers(1, true, "ErrorContext(fn=main)");
  builder.new_pair(3);
  builder.call(4, "vm.builtin.read_if_cond", {reg(0)});
  builder.branch(4, 2);
  builder.ret(1);
  builder.call(kRelaxVoid, "add", {reg(1), reg(1), reg(3)});
  builder.ret(3);
  Tensor choice = Tensor::empty({}, {kDLUInt, 1, 1});
  ExecutorOptions options;
  options.given_inputs = [&] {
    return std::vector<TensorInfo>{{"choice", {}, choice.dtype(), {}}};
  };
  for (const bool truth : {true, false}) {
    Tensor output;
    {
      DebugExecutor executor = executor_of(builder, options);
      *static_cast<std::uint8_t*>(choice.data()) = truth ? 1 : 0;
      executor.set_input("choice", choice);
      executor.set_input_zero_copy(executor.input_index("x"), floats({1, 2}));
      executor.run();
      output = executor.output(0);
    }
    EXPECT_TRUE(has_elements(floats_of(output), {truth ? 1.0F : 2.0F, truth ? 2.0F : 4.0F}));
  }
}

// main(x) = the number of x at `offset` + its first one.
ExecutableBuilder viewing_executable(std::int64_t offset) {
  ExecutableBuilder builder;
  const std::int64_t one = con(builder.shape({1})), type = con(builder.float32());
  builder.begin("main", {"x"}, 5);
  builder.check_numbers(0, true, "ErrorContext(fn=main, loc=param[0], param=x) ");
  builder.call(1, "runtime.TVMTensorCreateView", {reg(0), one, type, imm(offset)});
  builder.call(2, "runtime.TVMTensorCreateView", {reg(0), one, type, imm(0)});
  builder.call(3, "vm.builtin.alloc_storage", {reg(kRelaxMachine), one, imm(0), type});
  builder.call(4, "vm.builtin.alloc_tensor", {reg(3), imm(0), one, type});
  builder.call(kRelaxVoid, "add", {reg(1), reg(2), reg(4)});
  builder.ret(4);
  return builder;
}

TEST(RelaxExecutorTest, LooksAtPartsOfTensors) {
  DebugExecutor executor = executor_of(viewing_executable(4));
  executor.set_input("x", floats({3, 40}));
  executor.run();
  EXPECT_TRUE(has_elements(floats_of(executor.output(0)), {43}));
  for (const std::int64_t offset : {8, -4}) {
    EXPECT_TRUE(throws_error(
        [&] {
          DebugExecutor beyond = executor_of(viewing_executable(offset));
          beyond.set_input("x", floats({3, 40}));
          beyond.run();
        },
        ErrorKind::kFormat, "TVMTensorCreateView"));
  }
}

// main(x) = doubled(x) where x has elements, else x + x by itself.
ExecutableBuilder choosing_executable() {
  ExecutableBuilder builder;
  const std::string context =
      "ErrorContext(fn=main, loc=param[0], param=x, annotation=R.Tensor((n,), "
      "dtype=\"float32\")) ";
  const auto write_sum = [&] {
    builder.call(2, "vm.builtin.shape_of", {reg(0)});
    builder.call(3, "vm.builtin.alloc_storage",
                 {reg(kRelaxMachine), reg(2), imm(0), con(builder.float32())});
    builder.call(4, "vm.builtin.alloc_tensor", {reg(3), imm(0), reg(2), con(builder.float32())});
    builder.call(kRelaxVoid, "add", {reg(0), reg(0), reg(4)});
  };
  const std::int64_t doubled = builder.begin("doubled", {"x"}, 5);
  write_sum();
  builder.ret(4);
  builder.begin("main", {"x"}, 6);
  builder.check_numbers(0, false, context);
  builder.call(1, "vm.builtin.alloc_shape_heap", {reg(kRelaxMachine), imm(1)});
  builder.call(kRelaxVoid, "vm.builtin.match_shape",
               {reg(0), reg(1), imm(1), imm(1), imm(0), con(builder.text(context))});
  builder.call(5, "vm.builtin.make_prim_value", {reg(1), imm(1), imm(0)});
  builder.call(5, "vm.builtin.read_if_cond", {reg(5)});
  builder.branch(5, 3);
  builder.call(4, doubled, {reg(0)});
  builder.jump(5);
  write_sum();
  builder.ret(4);
  return builder;
}

TEST(RelaxExecutorTest, SizesChooseAmongFunctionsWhenItIsPlanned) {
  DebugExecutor executor = executor_of(choosing_executable());
  executor.set_input("x", floats({1, 2, 3}));
  executor.run();
  EXPECT_TRUE(has_elements(floats_of(executor.output(0)), {2, 4, 6}));
  EXPECT_TRUE(has_elements(executor.graph().functions, {"doubled"}));
  EXPECT_EQ(executor.nodes()[0].function, "add");
  executor.set_input("x", floats({}));
  executor.run();
  EXPECT_EQ(executor.outputs()[0].shape, std::vector<std::int64_t>{0});
  EXPECT_TRUE(executor.graph().functions.empty());
}

// main(x, y) = x + x, where y has twice as many elements as x, and the sum two fewer than x: for no
// x of one element.
ExecutableBuilder computing_executable() {
  ExecutableBuilder builder;
  const std::int64_t context = con(builder.text("ErrorContext(fn=main)"));
  builder.begin("main", {"x", "y"}, 6);
  builder.call(2, "vm.builtin.alloc_shape_heap", {reg(kRelaxMachine), imm(3)});
  builder.check_numbers(0, false, "ErrorContext(fn=main, loc=param[0], param=x)");
  builder.check_numbers(1, false, "ErrorContext(fn=main, loc=param[1], param=y)");
  const auto match = [&](std::int64_t input, std::int64_t code, std::int64_t number) {
    builder.call(kRelaxVoid, "vm.builtin.match_shape",
                 {reg(input), reg(2), imm(1), imm(code), imm(number), context});
  };
  match(0, 1, 0);
  builder.call(kRelaxVoid, "twice", {reg(2)});
  match(1, 3, 1);
  builder.call(kRelaxVoid, "two_fewer", {reg(2)});
  builder.call(3, "vm.builtin.make_shape", {reg(2), imm(1), imm(1), imm(2)});
  builder.call(4, "vm.builtin.alloc_storage",
               {reg(kRelaxMachine), reg(3), imm(0), con(builder.float32())});
  builder.call(5, "vm.builtin.alloc_tensor", {reg(4), imm(0), reg(3), con(builder.float32())});
  builder.call(kRelaxVoid, "add_last", {reg(0), reg(0), reg(5)});
  builder.ret(5);
  return builder;
}

TEST(RelaxExecutorTest, WaitsForInputsThatItCanRun) {
  DebugExecutor executor = executor_of(computing_executable());
  EXPECT_TRUE(executor.outputs().empty());
  for (const std::size_t size : {3, 5, 4, 3}) {
    executor.set_input("x", floats(std::vector<float>(size, 1)));
    executor.set_input("y", floats(std::vector<float>(2 * size, 1)));
    executor.run();
    ASSERT_EQ(executor.outputs().size(), 1u);
    EXPECT_EQ(floats_of(executor.output(0)), std::vector<float>(size - 2, 2));
  }
  executor.set_input("y", floats({1, 2, 3, 4, 5}));
  const auto run = [&] { executor.run(); };
  EXPECT_TRUE(throws_error(run, ErrorKind::kMismatch, {"[5] is 5, but 6 elsewhere"}));
  EXPECT_TRUE(throws_error([&] { executor.output(0); }, ErrorKind::kMismatch, "6 elsewhere"));
  executor.set_input("x", floats({1}));
  executor.set_input("y", floats({1, 2}));
  EXPECT_TRUE(throws_error(run, ErrorKind::kFormat, "negative"));
}

// main(x, y) = x + y; of y nothing is said.
ExecutableBuilder silent_executable() {
  ExecutableBuilder builder;
  builder.begin("main", {"x", "y"}, 4);
  builder.check_numbers(0, true, "ErrorContext(fn=main, loc=param[0], param=x)");
  builder.new_pair(3);
  builder.call(kRelaxVoid, "add", {reg(0), reg(1), reg(3)});
  builder.ret(3);
  return builder;
}

TEST(RelaxExecutorTest, IsToldWhatTheFunctionDoesNotSay) {
  EXPECT_TRUE(throws_error([] { executor_of(silent_executable()); }, ErrorKind::kIncompatible,
                           {"'y'", "nothing tells", "--inputs"}));
  ExecutorOptions options;
  options.given_inputs = [] {
    return std::vector<TensorInfo>{{"other", {}, {kDLInt, 8, 1}, {}},
                                   {"y", {2}, {kDLFloat, 32, 1}, {}}};
  };
  DebugExecutor executor = executor_of(silent_executable(), options);
  EXPECT_TRUE(has_elements(executor.inputs()[1].symbols, {"?"}));
  executor.set_input("x", floats({1, 2}));
  executor.set_input("y", floats({10, 20}));
  executor.run();
  EXPECT_TRUE(has_elements(floats_of(executor.output(0)), {11, 22}));
}

// main(x) = x where a compiled function gives a number that is not zero for it.
TEST(RelaxExecutorTest, UsesWhatCompiledFunctionsGive) {
  ExecutableBuilder builder;
  builder.begin("main", {"x"}, 4);
  builder.check_numbers(0, true, "ErrorContext(fn=main, loc=param[0], param=x)");
  builder.call(1, "rank", {reg(0)});
  builder.call(2, "vm.builtin.copy", {reg(1)});
  builder.call(3, "vm.builtin.make_tuple", {reg(0), reg(2)});
  builder.ret(3);
  DebugExecutor executor = executor_of(builder);
  executor.set_input("x", floats({1, 2}));
  executor.run();
  ASSERT_EQ(executor.outputs().size(), 2u);
  EXPECT_TRUE(has_elements(floats_of(executor.output(0)), {1, 2}));
  EXPECT_EQ(executor.output(1).elements<std::int64_t>()[0], 1);
}

TEST(RelaxExecutorTest, LeavesTensorsOnTheCpu) {
  for (const std::int64_t device : {1, 2}) {
    ExecutableBuilder builder;
    builder.begin("main", {"x"}, 4);
    builder.check_numbers(0, true, "ErrorContext(fn=main, loc=param[0], param=x)");
    builder.call(1, "vm.builtin.to_device", {reg(0), imm(device), imm(0)});
    builder.new_pair(3);
    builder.call(kRelaxVoid, "add", {reg(1), reg(1), reg(3)});
    builder.ret(3);
    if (device != kDLCPU) {
      EXPECT_TRUE(throws_error([&] { executor_of(builder); }, ErrorKind::kFormat,
                               {"to_device", "not the CPU"}));
      continue;
    }
    DebugExecutor executor = executor_of(builder);
    executor.set_input("x", floats({1, 2}));
    executor.run();
    EXPECT_TRUE(has_elements(floats_of(executor.output(0)), {2, 4}));
  }
}

TEST(RelaxSourceTest, TakesParametersThatAreKeptApart) {
  const auto library = std::make_shared<FunctionLibrary>(dynamic_executable().bytes());
  for (const char* name : {"p_0", "y"}) {
    RelaxSource source(library, "", {{name, floats({1, 2, 3})}});
    EXPECT_TRUE(has_elements(source.least_shapes()[1], {3}));
  }
  EXPECT_TRUE(throws_error([&] { RelaxSource(library, "", {{"weights", floats({1})}}); },
                           ErrorKind::kMismatch, {"'weights'", "'x', 'y'"}));
  EXPECT_TRUE(
      throws_error([&] { RelaxSource(library, "", {{"y", Tensor::empty({1}, {kDLInt, 8, 1})}}); },
                   ErrorKind::kMismatch, "float32 [rows]"));
}

}  // namespace
}  // namespace run_model
