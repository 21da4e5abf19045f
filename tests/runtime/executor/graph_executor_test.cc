#include <run_model/graph_executor.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include <run_model/error.h>
#include "tests/has_elements.h"
#include "tests/runtime/executor/graph_executor_fixture.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using testing::Each;

TEST_F(GraphExecutorTest, ComputesWithParametersInPlaceOrCopied) {
  for (bool aligned : {true, false}) {
    GraphExecutor executor = make(add_graph(), add_params(aligned));
    ASSERT_EQ(executor.inputs().size(), 1u);
    EXPECT_EQ(executor.inputs()[0].name, "x");
    EXPECT_EQ(executor.outputs()[0].name, "output_0");
    executor.set_input(0, vector_of({10, 20, 30, 40}));
    executor.run();
    EXPECT_TRUE(has_elements(values_of(executor.output(0)), {11, 22, 33, 44}));
    EXPECT_EQ(executor.memory().params_mapped, aligned ? 16u : 0u);
    EXPECT_EQ(executor.memory().params_copied, aligned ? 0u : 16u);
    executor.set_input("x", vector_of({0, 0, 0, 0}));
    executor.run();
    EXPECT_TRUE(has_elements(values_of(executor.output(0)), {1, 2, 3, 4}));
  }
}

TEST_F(GraphExecutorTest, RefusesToRunWithAnInputUnset) {
  DebugExecutor executor = make_debug(add_graph());
  executor.set_input("w", vector_of({1, 2, 3, 4}));
  EXPECT_TRUE(
      throws_error([&] { executor.run(); }, ErrorKind::kMismatch, "never set: 'x' (float32 [4])"));
  EXPECT_TRUE(throws_error([&] { executor.run_node(0); }, ErrorKind::kMismatch, "'x'"));
  executor.set_input("x", vector_of({1, 1, 1, 1}));
  executor.run();
  EXPECT_TRUE(has_elements(values_of(executor.output(0)), {2, 3, 4, 5}));
}

TEST_F(GraphExecutorTest, RefusesInputsOfAnotherForm) {
  GraphExecutor executor = make(add_graph(), add_params(true));
  EXPECT_TRUE(throws_error([&] { executor.set_input(0, vector_of({1, 2})); }, ErrorKind::kMismatch,
                           "input 'x' is float32 [4], but float32 [2] was given"));
  EXPECT_TRUE(throws_error([&] { executor.set_input(0, Tensor::empty({4}, parse_dtype("int32"))); },
                           ErrorKind::kMismatch, "int32"));
  EXPECT_TRUE(
      throws_error([&] { executor.set_input(0, Tensor()); }, ErrorKind::kMismatch, "empty tensor"));
  EXPECT_TRUE(throws_error([&] { executor.input_index("w"); }, ErrorKind::kMismatch,
                           "no input 'w', its inputs are 'x'"));
  EXPECT_THROW(executor.set_input(1, vector_of({1, 2, 3, 4})), std::out_of_range);
}

TEST_F(GraphExecutorTest, ReadsZeroCopyInputsWhereTheyAre) {
  GraphExecutor executor = make(add_graph(), add_params(true));
  Tensor x = vector_of({1, 1, 1, 1});
  executor.set_input_zero_copy(0, x);
  executor.run();
  EXPECT_TRUE(has_elements(values_of(executor.output(0)), {2, 3, 4, 5}));
  x.elements<float>()[0] = 100;
  executor.run();
  EXPECT_TRUE(has_elements(values_of(executor.output(0)), {101, 3, 4, 5}));
  executor.set_input(0, vector_of({0, 0, 0, 0}));
  executor.run();
  EXPECT_TRUE(has_elements(values_of(executor.output(0)), {1, 2, 3, 4}));
  EXPECT_EQ(x.elements<float>()[0], 100);
}

TEST_F(GraphExecutorTest, KeepsZeroCopyTensorsAlive) {
  GraphExecutor executor = make(add_graph(), add_params(true));
  executor.set_input_zero_copy(0, vector_of({1, 1, 1, 1}));
  executor.set_output_zero_copy(0, vector_of({0, 0, 0, 0}));
  executor.run();
  EXPECT_TRUE(has_elements(values_of(executor.output(0)), {2, 3, 4, 5}));
}

TEST_F(GraphExecutorTest, OutlivesTheExecutorThroughItsOutput) {
  Tensor output;
  {
    GraphExecutor executor = make(add_graph(), add_params(false));
    executor.set_input(0, vector_of({1, 1, 1, 1}));
    executor.run();
    output = executor.output(0);
  }
  EXPECT_TRUE(has_elements(values_of(output), {2, 3, 4, 5}));
}

TEST_F(GraphExecutorTest, RefusesMisalignedZeroCopyMemory) {
  GraphExecutor executor = make(add_graph(), add_params(true));
  Tensor whole = Tensor::empty({8}, kFloat32);
  Tensor inside = Tensor::view(static_cast<char*>(whole.data()) + 16, {4}, kFloat32, nullptr);
  EXPECT_TRUE(throws_error([&] { executor.set_input_zero_copy(0, inside); }, ErrorKind::kMismatch,
                           "not aligned to 128"));
  EXPECT_TRUE(throws_error([&] { executor.set_output_zero_copy(0, inside); }, ErrorKind::kMismatch,
                           "not aligned to 128"));
}

// x → reshape → add(reshaped, w) → reshape → output: both ends go through a reshape.
TEST_F(GraphExecutorTest, ZeroCopyFollowsReshapes) {
  json graph =
      graph_of({input_node("x"), input_node("w"), call_node("r", "__nop", {{0, 0}}),
                call_node("y", "fused_add", {{2, 0}, {1, 0}}), call_node("out", "__nop", {{3, 0}})},
               {0, 1, 0, 2, 2}, {{4, 0}});
  graph["attrs"]["shape"][1][0] = {2, 2};
  graph["attrs"]["shape"][1][4] = {1, 4};
  GraphExecutor executor = make(graph, add_params(true));
  Tensor x = vector_of({1, 1, 1, 1}).reshape({2, 2});
  Tensor y = vector_of({0, 0, 0, 0}).reshape({1, 4});
  executor.set_input_zero_copy(0, x);
  executor.set_output_zero_copy(0, y);
  executor.run();
  EXPECT_TRUE(has_elements(values_of(y), {2, 3, 4, 5}));
  EXPECT_EQ(executor.output(0).data(), y.data());
}

TEST_F(GraphExecutorTest, CopiesWhereAReshapeOrACopyNodeMovesTheTensor) {
  for (const char* function : {"__nop", "__copy"}) {
    GraphExecutor executor =
        make(graph_of({input_node("x"), input_node("w"), call_node("moved", function, {{0, 0}}),
                       call_node("y", "fused_add", {{2, 0}, {1, 0}})},
                      {0, 1, 2, 3}, {{3, 0}, {2, 0}}),
             add_params(true));
    executor.set_input(0, vector_of({5, 6, 7, 8}));
    executor.run();
    EXPECT_TRUE(has_elements(values_of(executor.output(0)), {6, 8, 10, 12})) << function;
    EXPECT_TRUE(has_elements(values_of(executor.output(1)), {5, 6, 7, 8})) << function;
  }
}

TEST_F(GraphExecutorTest, HandsOutInputsAndParametersAsOutputs) {
  json graph = add_graph();
  graph["heads"] = {{2, 0, 0}, {0, 0, 0}, {1, 0, 0}, {2, 0, 0}};
  GraphExecutor executor = make(graph, add_params(true));
  executor.set_input(0, vector_of({10, 20, 30, 40}));
  executor.run();
  ASSERT_EQ(executor.outputs().size(), 4u);
  EXPECT_TRUE(has_elements(values_of(executor.output(1)), {10, 20, 30, 40}));
  EXPECT_TRUE(has_elements(values_of(executor.output(2)), {1, 2, 3, 4}));
  EXPECT_EQ(executor.output(3).data(), executor.output(0).data());
  for (std::size_t index : {1, 2}) {
    EXPECT_TRUE(throws_error([&] { executor.set_output_zero_copy(index, vector_of({0, 0, 0, 0})); },
                             ErrorKind::kMismatch, "nothing writes it"));
  }
}

TEST_F(GraphExecutorTest, GivesAnOutputAsManyRowsAsAnotherHeadSays) {
  for (const std::int64_t lists : {1, 2}) {
    json graph = graph_of({input_node("x"), input_node("n")}, {0, 1}, {{0, 0}, {1, 0}});
    graph["attrs"]["shape"][1] = {{lists, 3, 2}, {1}};
    graph["attrs"]["dltype"][1][1] = "int64";
    graph["attrs"]["counted_outputs"] = {"list_int", {1, 1}};
    GraphExecutor executor = make(graph);
    ASSERT_EQ(executor.outputs().size(), 1u);
    EXPECT_TRUE(has_elements(executor.outputs()[0].shape, {lists, 3, 2}));
    Tensor x = Tensor::empty({lists, 3, 2}, kFloat32);
    std::iota(x.elements<float>().begin(), x.elements<float>().end(), 1.0f);
    executor.set_input(0, x);
    Tensor rows = Tensor::empty({1}, parse_dtype("int64"));
    for (const std::int64_t count : {2, 0, 3, -1, 4}) {
      rows.elements<std::int64_t>()[0] = count;
      executor.set_input(1, rows);
      executor.run();
      if (count < 0 || count > 3) {
        EXPECT_TRUE(throws_error([&] { executor.output(0); }, ErrorKind::kModel,
                                 "is said to have " + std::to_string(count) + " rows of the 3"));
        continue;
      }
      const Tensor output = executor.output(0);
      EXPECT_TRUE(has_elements(output.shape(), {lists, count, 2}));
      std::vector<float> wanted;
      for (std::int64_t list = 0; list < lists; ++list) {
        for (std::int64_t i = 0; i < 2 * count; ++i) {
          wanted.push_back(static_cast<float>(6 * list + i + 1));
        }
      }
      EXPECT_EQ(values_of(output), wanted);
    }
  }
}

// "y" is handed out twice, and a third time under another shape.
TEST_F(GraphExecutorTest, RefusesToWriteOneTensorToTwoPlaces) {
  json graph =
      graph_of({input_node("x"), input_node("w"), call_node("y", "fused_add", {{0, 0}, {1, 0}}),
                call_node("r", "__nop", {{2, 0}})},
               {0, 1, 2, 2}, {{2, 0}, {2, 0}, {3, 0}});
  GraphExecutor executor = make(graph, add_params(true));
  executor.set_input(0, vector_of({10, 20, 30, 40}));
  const Tensor first = vector_of({0, 0, 0, 0});
  executor.set_output_zero_copy(0, first);
  for (const std::size_t index : {1, 2}) {
    EXPECT_TRUE(throws_error([&] { executor.set_output_zero_copy(index, vector_of({0, 0, 0, 0})); },
                             ErrorKind::kMismatch, "is the same tensor as output 0"));
    executor.set_output_zero_copy(index, first);
  }
  executor.run();
  EXPECT_TRUE(has_elements(values_of(first), {11, 22, 33, 44}));
}

// The output shares its storage with an intermediate that is read by an earlier node.
TEST_F(GraphExecutorTest, ZeroCopyOutputLeavesReusedStorageAlone) {
  GraphExecutor executor = make(
      graph_of({input_node("x"), input_node("w"), call_node("a", "fused_add", {{0, 0}, {1, 0}}),
                call_node("b", "fused_add", {{2, 0}, {2, 0}}),
                call_node("c", "fused_add", {{3, 0}, {1, 0}})},
               {0, 1, 2, 3, 2}, {{4, 0}}),
      add_params(true));
  executor.set_input(0, vector_of({1, 1, 1, 1}));
  Tensor out = vector_of({0, 0, 0, 0});
  executor.set_output_zero_copy(0, out);
  executor.run();
  EXPECT_TRUE(has_elements(values_of(out), {5, 8, 11, 14}));
}

// (x, w) and (w, x) are joined to the output; 32 floats each, so that the parts are aligned.
json join_graph(const std::string& function) {
  json graph = graph_of(
      {input_node("x"), input_node("w"), call_node("a", "fused_concatenate", {{0, 0}, {1, 0}}),
       call_node("b", "fused_concatenate", {{1, 0}, {0, 0}}),
       call_node("joined", function, {{2, 0}, {3, 0}})},
      {0, 1, 2, 3, 4}, {{4, 0}});
  graph["attrs"]["shape"][1] = {{1, 16}, {1, 16}, {1, 32}, {1, 32}, {1, 64}};
  return graph;
}

ExecutorOptions planning(bool plan_memory) {
  ExecutorOptions options;
  options.plan_memory = plan_memory;
  return options;
}

std::vector<float> join_inputs(GraphExecutor& executor) {
  std::vector<float> x(16), w(16);
  for (std::size_t i = 0; i < 16; ++i) {
    x[i] = static_cast<float>(i);
    w[i] = -static_cast<float>(i) - 1.0f;
  }
  executor.set_input(0, vector_of(x).reshape({1, 16}));
  executor.set_input(1, vector_of(w).reshape({1, 16}));
  std::vector<float> expected;
  for (const auto* part : {&x, &w, &w, &x})
    expected.insert(expected.end(), part->begin(), part->end());
  return expected;
}

TEST_F(GraphExecutorTest, LeavesConcatenationsOut) {
  for (bool plan_memory : {true, false}) {
    DebugExecutor executor(files(join_graph("fused_concatenate"), ""), planning(plan_memory));
    EXPECT_EQ(executor.nodes()[2].joined, plan_memory);
    EXPECT_FALSE(executor.nodes()[0].joined);
    const std::vector<float> expected = join_inputs(executor);
    for (int run = 0; run < 3; ++run) {
      executor.run();
      EXPECT_EQ(values_of(executor.output(0)), expected);
    }
    EXPECT_EQ(executor.output(0).data() == executor.node_output(0, 0).data(), plan_memory);
  }
}

TEST_F(GraphExecutorTest, ZeroCopyOutputTakesItsPartsAlong) {
  DebugExecutor executor = make_debug(join_graph("fused_concatenate"));
  const std::vector<float> expected = join_inputs(executor);
  Tensor out = Tensor::empty({1, 64}, kFloat32);
  executor.set_output_zero_copy(0, out);
  for (std::size_t i = 0; i < executor.nodes().size(); ++i) executor.run_node(i);
  EXPECT_EQ(values_of(out), expected);
  EXPECT_EQ(executor.node_output(0, 0).data(), out.data());
}

TEST_F(GraphExecutorTest, NoticesAConcatenationThatIsNone) {
  GraphExecutor executor = make(join_graph("fused_concatenate_1"));
  join_inputs(executor);
  EXPECT_TRUE(throws_error([&] { executor.run(); }, ErrorKind::kModel,
                           "the function 'fused_concatenate_1' does more than its name says"));
  // The compiler's own plan runs it for what it is.
  GraphExecutor plain(files(join_graph("fused_concatenate_1"), ""), planning(false));
  std::vector<float> expected = join_inputs(plain);
  std::rotate(expected.begin(), expected.begin() + 32, expected.end());
  plain.run();
  EXPECT_EQ(values_of(plain.output(0)), expected);
}

TEST_F(GraphExecutorTest, FlattensWhereTheGraphSaysSo) {
  json graph =
      graph_of({input_node("x"), call_node("n", "fused_ndim", {{0, 0}})}, {0, 1}, {{1, 0}});
  graph["attrs"]["shape"][1][0] = {2, 2};
  for (bool flatten : {false, true}) {
    graph["nodes"][1]["attrs"]["flatten_data"] = flatten ? "1" : "0";
    GraphExecutor executor = make(graph);
    executor.set_input(0, vector_of({0, 0, 0, 0}).reshape({2, 2}));
    executor.run();
    EXPECT_THAT(values_of(executor.output(0)), Each(flatten ? 1 : 2));
  }
}

TEST_F(GraphExecutorTest, ReportsAFailingFunctionByNodeAndReasonAndHasNoOutputsThen) {
  GraphExecutor executor =
      make(graph_of({input_node("x"), call_node("bad", "fused_fail", {{0, 0}})}, {0, 1}, {{1, 0}}));
  executor.set_input(0, vector_of({0, 0, 0, 0}));
  const std::string reason =
      "node 'bad' (function 'fused_fail') failed: Assert fail: this function";
  EXPECT_TRUE(throws_error([&] { executor.run(); }, ErrorKind::kModel, reason));
  EXPECT_TRUE(throws_error([&] { executor.output(0); }, ErrorKind::kModel, reason));
}

TEST_F(GraphExecutorTest, RefusesPiecesThatDoNotFitTogether) {
  json graph = add_graph();
  graph["nodes"][2]["attrs"]["func_name"] = "fused_other";
  EXPECT_TRUE(throws_error([&] { make(graph); }, ErrorKind::kMismatch,
                           "calls the function 'fused_other', which library"));
  EXPECT_TRUE(
      throws_error([&] { make(add_graph(), testing_params::float_params({{"v", {1, 2}}}, true)); },
                   ErrorKind::kMismatch, "parameter 'v', which the graph does not use"));
  EXPECT_TRUE(
      throws_error([&] { make(add_graph(), testing_params::float_params({{"w", {1, 2}}}, true)); },
                   ErrorKind::kMismatch, "'w' as float32 [2], the graph expects float32 [4]"));
  ModelFiles swapped = files(add_graph(), add_params(true));
  std::swap(swapped.graph, swapped.params);
  EXPECT_TRUE(
      throws_error([&] { GraphExecutor executor(swapped); }, ErrorKind::kFormat, "swapped"));
  EXPECT_TRUE(throws_error([&] { GraphExecutor executor({EXECUTOR_MODEL, "", ""}); },
                           ErrorKind::kMismatch, "holds no graph"));
}

TEST_F(GraphExecutorTest, RefusesTensorsLargerThanTheMachine) {
  json graph = add_graph();
  for (int i = 0; i < 3; ++i) graph["attrs"]["shape"][1][i] = {std::int64_t{1} << 50};
  EXPECT_TRUE(throws_error([&] { make(graph); }, ErrorKind::kIncompatible, "this machine has"));
}

TEST_F(GraphExecutorTest, TellsWhenEverythingIsLoaded) {
  int calls = 0;
  ExecutorOptions options;
  options.on_loaded = [&] { ++calls; };
  GraphExecutor executor(files(add_graph(), add_params(true)), options);
  EXPECT_EQ(calls, 1);
  calls = 0;
  EXPECT_THROW(GraphExecutor(files(add_graph(), "nonsense"), options), Error);
  EXPECT_EQ(calls, 0);
}

TEST_F(GraphExecutorTest, RunsOnOtherThreadsFromThenOn) {
  GraphExecutor executor = make(add_graph(), add_params(true));
  executor.set_input(0, vector_of({1, 1, 1, 1}));
  const auto pool = std::make_shared<ThreadPool>(ThreadPoolOptions{.threads = 2});
  executor.set_threads(pool);
  EXPECT_EQ(pool.use_count(), 2);
  executor.run();
  EXPECT_TRUE(has_elements(values_of(executor.output(0)), {2, 3, 4, 5}));
  executor.set_threads(nullptr);
  EXPECT_EQ(pool.use_count(), 1);
  executor.run();
  EXPECT_TRUE(has_elements(values_of(executor.output(0)), {2, 3, 4, 5}));
}

}  // namespace
}  // namespace run_model
