#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "rpc/functions/builtin.h"
#include "rpc/modules/library_module.h"
#include "rpc/timing.h"
#include "tests/has_elements.h"
#include "tests/rpc/executor_fixture.h"
#include "tests/throws_error.h"

namespace run_model::rpc {
namespace {

using namespace testing_executor;
using testing::AllOf;
using testing::Each;
using testing::Ge;
using testing::Lt;
using testing::SizeIs;

class TimeEvaluatorTest : public testing::Test {
 protected:
  TimeEvaluatorTest() {
    add_time_evaluator(registry_);
    registry_.add("count", [this](const Arguments& arguments) -> Value {
      ++counted_;
      arguments_ = arguments.size();
      return {};
    });
  }

  FunctionPointer evaluator(const std::vector<Value>& arguments) {
    return std::get<FunctionPointer>(registry_.find("runtime.RPCTimeEvaluator")->call(arguments));
  }

  // Module or null and function, then as TVM 0.18 calls it: two rows of three calls.
  static std::vector<Value> measured(Value module, const std::string& function,
                                     const std::string& before = "") {
    return {std::move(module), function,    number(kDLCPU), number(0), number(3), number(2),
            number(0),         number(100), number(0),      number(1), number(0), before};
  }

  static std::vector<double> seconds(const Value& value) {
    const auto data = std::get<Bytes>(value).data;
    std::vector<double> doubles(data.size() / sizeof(double));
    std::memcpy(doubles.data(), data.data(), data.size());
    return doubles;
  }

  Registry registry_;
  int counted_ = 0;
  std::size_t arguments_ = 0;
};

TEST_F(TimeEvaluatorTest, MeasuresAFunctionOfTheServer) {
  const FunctionPointer function = evaluator(measured({}, "count"));
  EXPECT_EQ(counted_, 0);
  const std::vector<Value> arguments{number(1), "two"};
  EXPECT_THAT(seconds(function->call(arguments)), AllOf(SizeIs(2), Each(AllOf(Ge(0.0), Lt(1.0)))));
  EXPECT_EQ(counted_, 1 + 2 * 3);
  EXPECT_EQ(arguments_, 2u);
}

TEST_F(TimeEvaluatorTest, MeasuresACompiledFunction) {
  const Value library_module =
      std::shared_ptr<RemoteModule>(std::make_shared<LibraryModule>(library()));
  const FunctionPointer function = evaluator(measured(library_module, "fused_add"));
  const Tensor sum = vector_of({0, 0, 0, 0});
  const std::vector<Value> arguments{given({1, 2, 3, 4}), given({1, 1, 1, 1}), TensorArgument{sum}};
  EXPECT_THAT(seconds(function->call(arguments)), SizeIs(2));
  EXPECT_TRUE(has_elements(values_of(sum), {2, 3, 4, 5}));
}

TEST_F(TimeEvaluatorTest, MeasuresAnExecutorsRun) {
  const auto executor = make_graph_executor(library(), graph());
  EXPECT_THAT(seconds(evaluator(measured(executor, "run"))->call({})), SizeIs(2));
  const FunctionPointer end_to_end = evaluator(measured(executor, "run_from_inputs"));
  const std::vector<Value> arguments{number(kDLCPU), number(0), "x", given({1, 2, 3, 4})};
  EXPECT_THAT(seconds(end_to_end->call(arguments)), SizeIs(2));
  EXPECT_TRUE(has_elements(values_of(call(executor, "get_output", {number(0)})), {-1, -2, -3, -4}));
}

TEST_F(TimeEvaluatorTest, CallsAFunctionBeforeEachRow) {
  registry_.add("nothing", [](const Arguments&) -> Value { return {}; });
  evaluator(measured({}, "nothing", "count"))->call({});
  EXPECT_EQ(counted_, 2);
}

TEST_F(TimeEvaluatorTest, TakesTheArgumentsOfOlderReleases) {
  const std::vector<Value> head = {Value(),   "count",   number(kDLCPU), number(0),
                                   number(3), number(2), number(0)};
  for (const std::vector<Value>& tail :
       {std::vector<Value>{""},                                        // 0.8
        std::vector<Value>{number(0), number(1), ""},                  // 0.9
        std::vector<Value>{number(100), number(0), number(1), ""}}) {  // 0.10 to 0.13
    std::vector<Value> arguments = head;
    arguments.insert(arguments.end(), tail.begin(), tail.end());
    counted_ = 0;
    EXPECT_THAT(seconds(evaluator(arguments)->call({})), SizeIs(2));
    EXPECT_EQ(counted_, 7);
  }
}

TEST_F(TimeEvaluatorTest, RefusesWhatIsNotThere) {
  const auto executor = make_graph_executor(library(), graph());
  EXPECT_TRUE(throws_error([&] { evaluator(measured({}, "missing")); }, ErrorKind::kMismatch,
                           "no function 'missing'"));
  EXPECT_TRUE(throws_error([&] { evaluator(measured(executor, "missing")); }, ErrorKind::kMismatch,
                           "the module (GraphExecutor) has no function 'missing'"));
  EXPECT_TRUE(throws_error([&] { evaluator(measured({}, "count", "missing")); },
                           ErrorKind::kMismatch, "no function 'missing'"));
  std::vector<Value> arguments = measured({}, "count");
  arguments[2] = number(8);
  EXPECT_TRUE(throws_error([&] { evaluator(arguments); }, ErrorKind::kMismatch, "device type 8"));
  arguments.resize(9);
  EXPECT_TRUE(throws_error([&] { evaluator(arguments); }, ErrorKind::kMismatch, ""));
  arguments.resize(3);
  EXPECT_TRUE(
      throws_error([&] { evaluator(arguments); }, ErrorKind::kMismatch, "8 to 12 arguments"));
}

TEST_F(TimeEvaluatorTest, PassesFailuresOn) {
  const Value library_module =
      std::shared_ptr<RemoteModule>(std::make_shared<LibraryModule>(library()));
  const FunctionPointer function = evaluator(measured(library_module, "fused_fail"));
  EXPECT_TRUE(throws_error([&] { function->call({}); }, ErrorKind::kModel, "always fails"));
}

TEST_F(TimeEvaluatorTest, FlushingLeavesTensorsAsTheyAre) {
  const Tensor tensor = vector_of(std::vector<float>(5000, 3.0F));
  const std::vector<Value> arguments{given({1}), TensorArgument{tensor}};
  registry_.find("cache_flush_cpu_non_first_arg")->call(arguments);
  EXPECT_THAT(values_of(tensor), Each(3.0F));
  const std::vector<Value> wrong{given({1}), number(1)};
  EXPECT_TRUE(throws_error([&] { registry_.find("cache_flush_cpu_non_first_arg")->call(wrong); },
                           ErrorKind::kMismatch, "expected a tensor"));
  flush_from_caches({});
}

}  // namespace
}  // namespace run_model::rpc
