#include <run_model/load_params.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <vector>

#include "tests/error_matcher.h"
#include "tests/runtime/test_graphs.h"
#include "tests/runtime/test_params.h"

namespace run_model {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing_graphs::call_node;
using testing_graphs::graph_of;
using testing_graphs::input_node;

// y = x + w
GraphExecutor adder() {
  const auto graph =
      graph_of({input_node("x"), input_node("w"), call_node("y", "fused_add", {{0, 0}, {1, 0}})},
               {0, 1, 2}, {{2, 0}});
  ExecutorOptions options;
  options.require_inputs = false;
  return GraphExecutor(Module::open(EXECUTOR_MODEL), graph.dump(), options);
}

std::vector<float> argument(GraphExecutor& executor, std::size_t index) {
  const Tensor tensor = executor.argument(index);
  const auto elements = tensor.elements<float>();
  return {elements.begin(), elements.end()};
}

void load(GraphExecutor& executor, const std::string& bytes) {
  load_params(executor, std::as_bytes(std::span(bytes)), "the parameters");
}

TEST(LoadParams, CopiesThoseThatTheGraphHas) {
  for (const bool aligned : {true, false}) {
    GraphExecutor executor = adder();
    const Tensor before = executor.argument(1);
    load(executor, testing_params::float_params({{"other", {9}}, {"w", {1, 2, 3, 4}}}, aligned));
    EXPECT_THAT(argument(executor, 1), ElementsAre(1, 2, 3, 4));
    EXPECT_EQ(executor.argument(1).data(), before.data()) << "who holds the argument must see them";
    EXPECT_THAT(argument(executor, 0), Each(0));
  }
}

TEST(LoadParams, SetsNothingWhenOneDoesNotFit) {
  GraphExecutor executor = adder();
  EXPECT_THAT(
      [&] {
        load(executor, testing_params::float_params({{"w", {1, 2, 3, 4}}, {"x", {1}}}, true));
      },
      ThrowsError(ErrorKind::kMismatch,
                  "parameter 'x' as float32 [1], the graph expects float32 [4]"));
  EXPECT_THAT(argument(executor, 1), Each(0));
  EXPECT_THAT([&] { load(executor, "no parameters"); },
              ThrowsError(ErrorKind::kFormat, "the parameters"));
}

}  // namespace
}  // namespace run_model
