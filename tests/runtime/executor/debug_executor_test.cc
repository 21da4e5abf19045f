#include <run_model/debug_executor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>

#include <run_model/error.h>
#include "tests/has_elements.h"
#include "tests/runtime/executor/graph_executor_fixture.h"
#include "tests/runtime/test_params.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing::Each;

using DebugExecutorTest = GraphExecutorTest;

TEST_F(DebugExecutorTest, RunsNodeByNode) {
  DebugExecutor executor = make_debug(
      graph_of({input_node("x"), input_node("w"), call_node("a", "fused_add", {{0, 0}, {1, 0}}),
                call_node("r", "__nop", {{2, 0}}), call_node("b", "fused_both", {{3, 0}}, 2)},
               {0, 1, 2, 2, 3, 4}, {{4, 1}}),
      add_params(true));
  executor.set_input(0, vector_of({1, 1, 1, 1}));
  ASSERT_EQ(executor.nodes().size(), 3u);
  EXPECT_EQ(executor.nodes()[0].function, "fused_add");
  EXPECT_EQ(executor.nodes()[0].inputs[1].name, "w");
  EXPECT_EQ(executor.nodes()[1].function, "__nop");
  EXPECT_EQ(executor.nodes()[2].outputs[1].name, "b:1");
  for (std::size_t i = 0; i < executor.nodes().size(); ++i) executor.run_node(i);
  EXPECT_TRUE(has_elements(values_of(executor.node_output(0, 0)), {2, 3, 4, 5}));
  EXPECT_TRUE(has_elements(values_of(executor.node_output(2, 0)), {4, 6, 8, 10}));
  EXPECT_TRUE(has_elements(values_of(executor.output(0)), {-2, -3, -4, -5}));
  EXPECT_THROW(executor.node_output(0, 1), Error);
}

TEST_F(DebugExecutorTest, GivesInputsAndParametersAsArguments) {
  DebugExecutor executor = make_debug(add_graph(), add_params(true));
  ASSERT_EQ(executor.arguments().size(), 2u);
  EXPECT_EQ(executor.arguments()[1].name, "w");
  EXPECT_EQ(executor.argument_index("w"), 1u);
  EXPECT_EQ(executor.argument_index("y"), std::nullopt);
  EXPECT_THROW(executor.argument(2), std::out_of_range);
  const Tensor x = executor.argument(0);
  std::fill(x.elements<float>().begin(), x.elements<float>().end(), 1.0F);
  executor.run();
  EXPECT_TRUE(has_elements(values_of(executor.output(0)), {2, 3, 4, 5}));
}

// A mapped parameter cannot be written to where it is, a copied one can.
TEST_F(DebugExecutorTest, GivesParametersWhereTheyCanBeWritten) {
  for (const bool aligned : {true, false}) {
    const ModelFiles model = files(add_graph(), add_params(aligned));
    DebugExecutor executor(model);
    const Tensor w = executor.argument(1);
    EXPECT_TRUE(has_elements(values_of(w), {1, 2, 3, 4}));
    EXPECT_EQ(executor.argument(1).data(), w.data());
    w.elements<float>()[0] = 100;
    executor.set_input(0, vector_of({1, 1, 1, 1}));
    executor.run();
    EXPECT_TRUE(has_elements(values_of(executor.output(0)), {101, 3, 4, 5}));
    EXPECT_TRUE(has_elements(values_of(DebugExecutor(model).argument(1)), {1, 2, 3, 4}));
  }
}

TEST_F(DebugExecutorTest, ReadsZeroCopyParametersWhereTheyAre) {
  DebugExecutor executor = make_debug(add_graph(), add_params(true));
  const Tensor w = vector_of({5, 5, 5, 5});
  executor.set_argument_zero_copy(1, w);
  executor.set_input(0, vector_of({1, 1, 1, 1}));
  executor.run();
  EXPECT_THAT(values_of(executor.output(0)), Each(6));
  EXPECT_EQ(executor.argument(1).data(), w.data());
  // It is the parameter's memory from now on.
  executor.set_argument(1, vector_of({7, 7, 7, 7}));
  EXPECT_THAT(values_of(w), Each(7));
  EXPECT_TRUE(throws_error([&] { executor.set_argument(1, vector_of({7})); }, ErrorKind::kMismatch,
                           "input 'w' is float32 [4], but float32 [1] was given"));
}

void load(DebugExecutor& executor, const std::string& bytes) {
  executor.load_params(std::as_bytes(std::span(bytes)), "the parameters");
}

TEST_F(DebugExecutorTest, CopiesTheParametersThatTheGraphHas) {
  for (const bool aligned : {true, false}) {
    DebugExecutor executor = make_debug(add_graph());
    const Tensor before = executor.argument(1);
    load(executor, testing_params::float_params({{"other", {9}}, {"w", {1, 2, 3, 4}}}, aligned));
    EXPECT_TRUE(has_elements(values_of(executor.argument(1)), {1, 2, 3, 4}));
    EXPECT_EQ(executor.argument(1).data(), before.data()) << "who holds the argument must see them";
    EXPECT_THAT(values_of(executor.argument(0)), Each(0));
  }
}

TEST_F(DebugExecutorTest, SetsNoParameterWhenOneDoesNotFit) {
  DebugExecutor executor = make_debug(add_graph());
  EXPECT_TRUE(throws_error(
      [&] {
        load(executor, testing_params::float_params({{"w", {1, 2, 3, 4}}, {"x", {1}}}, true));
      },
      ErrorKind::kMismatch, "parameter 'x' as float32 [1], the graph expects float32 [4]"));
  EXPECT_THAT(values_of(executor.argument(1)), Each(0));
  EXPECT_TRUE(
      throws_error([&] { load(executor, "no parameters"); }, ErrorKind::kFormat, "the parameters"));
}

}  // namespace
}  // namespace run_model
