#include "rpc/modules/graph_executor_module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "rpc/functions/builtin.h"
#include "rpc/modules/library_module.h"
#include "tests/has_elements.h"
#include "tests/rpc/executor_fixture.h"
#include "tests/throws_error.h"

namespace run_model::rpc {
namespace {

using namespace testing_executor;
using testing::Each;

class ExecutorModuleTest : public testing::Test {
 protected:
  Value ask(const std::string& function, const std::vector<Value>& arguments = {}) {
    return call(module_, function, arguments);
  }
  std::vector<float> result() {
    ask("run");
    return values_of(ask("get_output", {number(0)}));
  }
  void expect_refused(const std::string& function, const std::vector<Value>& arguments,
                      const std::string& text) {
    EXPECT_TRUE(throws_error([&] { ask(function, arguments); }, ErrorKind::kMismatch, text));
  }

  std::shared_ptr<RemoteModule> module_ = make_graph_executor(library(), graph());
};

TEST_F(ExecutorModuleTest, OffersWhatTvmsGraphModuleLooksUp) {
  EXPECT_EQ(module_->kind(), "GraphExecutor");
  for (const char* name :
       {"set_input", "set_input_zero_copy", "set_output_zero_copy", "run", "get_output",
        "get_input", "get_num_outputs", "get_input_index", "get_input_info", "get_num_inputs",
        "load_params", "share_params", "run_from_inputs"}) {
    EXPECT_NE(module_->find(name), nullptr) << name;
  }
  EXPECT_EQ(module_->find("debug_get_output"), nullptr);
}

TEST_F(ExecutorModuleTest, RunsWithInputsByNameAndByIndex) {
  ask("set_input", {"x", given({1, 2, 3, 4})});
  ask("set_input", {number(1), given({10, 10, 10, 10})});
  EXPECT_TRUE(has_elements(result(), {-11, -12, -13, -14}));
  ask("set_input", {"none of this graph", given({1})});
  EXPECT_TRUE(has_elements(result(), {-11, -12, -13, -14}));
}

TEST_F(ExecutorModuleTest, RunsWithZerosForWhatWasNotSet) { EXPECT_THAT(result(), Each(0)); }

TEST_F(ExecutorModuleTest, CountsInputsWithParameters) {
  EXPECT_EQ(std::get<std::int64_t>(ask("get_num_inputs")), 2);
  EXPECT_EQ(std::get<std::int64_t>(ask("get_num_outputs")), 1);
  EXPECT_EQ(std::get<std::int64_t>(ask("get_input_index", {"w"})), 1);
  EXPECT_EQ(std::get<std::int64_t>(ask("get_input_index", {"y"})), -1);
}

// This is how TVM's Python sets inputs: it copies into what get_input gives.
TEST_F(ExecutorModuleTest, GivesInputsToBeWrittenTo) {
  const Value x = ask("get_input", {"x"});
  const auto elements = std::get<ArrayResult>(x).tensor.elements<float>();
  std::fill(elements.begin(), elements.end(), 5.0F);
  EXPECT_THAT(result(), Each(-5));
  EXPECT_THAT(values_of(ask("get_input", {number(0)})), Each(5));
  EXPECT_TRUE(std::holds_alternative<std::monostate>(ask("get_input", {"no such input"})));
}

TEST_F(ExecutorModuleTest, GivesOutputsSharedAndCopied) {
  const Value shared = ask("get_output", {number(0)});
  ask("set_input", {"x", given({1, 2, 3, 4})});
  ask("run");
  EXPECT_TRUE(has_elements(values_of(shared), {-1, -2, -3, -4}));
  const Tensor copy = vector_of({0, 0, 0, 0});
  ask("get_output", {number(0), TensorArgument{copy}});
  EXPECT_TRUE(has_elements(values_of(copy), {-1, -2, -3, -4}));
  EXPECT_TRUE(has_elements(values_of(ask("get_output", {"b"})), {-1, -2, -3, -4}));
}

TEST_F(ExecutorModuleTest, OutputsOutliveTheModule) {
  ask("set_input", {"x", given({1, 2, 3, 4})});
  ask("run");
  const Value output = ask("get_output", {number(0)});
  module_.reset();
  EXPECT_TRUE(has_elements(values_of(output), {-1, -2, -3, -4}));
}

TEST_F(ExecutorModuleTest, FunctionsKeepTheirModule) {
  const FunctionPointer run = module_->find("run");
  const FunctionPointer count = module_->find("get_num_inputs");
  module_.reset();
  run->call({});
  EXPECT_EQ(std::get<std::int64_t>(count->call({})), 2);
}

TEST_F(ExecutorModuleTest, ReadsAndWritesTensorsOfTheClientInPlace) {
  const Tensor x = vector_of({1, 1, 1, 1});
  const Tensor out = vector_of({0, 0, 0, 0});
  ask("set_input_zero_copy", {"x", TensorArgument{x}});
  ask("set_output_zero_copy", {number(0), TensorArgument{out}});
  ask("run");
  EXPECT_THAT(values_of(out), Each(-1));
  x.elements<float>()[0] = 7;
  const Tensor other = vector_of({0, 0, 0, 0});
  ask("set_output_zero_copy", {"b:0", TensorArgument{other}});
  ask("run");
  EXPECT_THAT(values_of(out), Each(-1));
  EXPECT_TRUE(has_elements(values_of(other), {-7, -1, -1, -1}));
  // Reading the input does not take it away.
  EXPECT_TRUE(has_elements(values_of(ask("get_input", {"x"})), {7, 1, 1, 1}));
  EXPECT_TRUE(has_elements(result(), {-7, -1, -1, -1}));
}

TEST_F(ExecutorModuleTest, LoadsParameters) {
  ask("load_params",
      {bytes(testing_params::float_params({{"w", {1, 2, 3, 4}}, {"other", {1}}}, true))});
  EXPECT_TRUE(has_elements(result(), {-1, -2, -3, -4}));
  expect_refused("load_params", {bytes(testing_params::float_params({{"w", {1}}}, true))},
                 "the parameter file that the client sent has parameter 'w' as float32 [1]");
}

TEST_F(ExecutorModuleTest, SharesParameters) {
  const Value params = bytes(testing_params::float_params({{"w", {1, 2, 3, 4}}}, true));
  const auto other = make_graph_executor(library(), graph());
  call(other, "load_params", {params});
  ask("share_params", {other, params});
  EXPECT_TRUE(has_elements(result(), {-1, -2, -3, -4}));
  call(other, "set_input", {"w", given({5, 5, 5, 5})});
  EXPECT_THAT(result(), Each(-5));
  expect_refused("share_params", {std::make_shared<LibraryModule>(library()), params},
                 "a graph executor");
}

TEST_F(ExecutorModuleTest, RunsFromInputsToOutputs) {
  const Value array = ask("run_from_inputs", {number(kDLCPU), number(0), "x", given({1, 2, 3, 4}),
                                              number(1), given({1, 1, 1, 1})});
  EXPECT_EQ(std::get<std::shared_ptr<RemoteObject>>(array)->kind(), "Array");
  EXPECT_TRUE(has_elements(values_of(ask("get_output", {number(0)})), {-2, -3, -4, -5}));
  expect_refused("run_from_inputs", {number(8), number(0)}, "device type 8");
  expect_refused("run_from_inputs", {number(1), number(0), "x"}, "pairs");
  expect_refused("run_from_inputs", {number(1), number(0), "z", given({1})},
                 "no input of the name 'z'");
}

TEST_F(ExecutorModuleTest, RefusesWhatDoesNotFit) {
  expect_refused("set_input", {"x", given({1, 2})},
                 "input 'x' is float32 [4], but float32 [2] was given");
  expect_refused("set_input", {number(2), given({1, 2, 3, 4})}, "is 2, expected 0 to 1");
  expect_refused("set_input", {number(-1), given({1, 2, 3, 4})}, "is -1");
  expect_refused("set_input", {"x", number(3)}, "is an integer, expected a tensor");
  expect_refused("set_input", {"x"}, "takes 2 arguments");
  expect_refused("set_input_zero_copy", {"x", TensorArgument{Tensor::empty({4}, {kDLInt, 32, 1})}},
                 "int32");
  expect_refused("get_output", {number(1)}, "is 1, expected 0 to 0");
  expect_refused("get_output", {"nothing"}, "no output of the name 'nothing'");
  expect_refused("get_output", {number(0), given({1})}, "one of float32 [4] (it is float32 [1])");
  expect_refused("set_output_zero_copy", {number(0), given({1})},
                 "output 'output_0' is float32 [4]");
  expect_refused("run", {number(1)}, "takes 0 arguments");
  EXPECT_TRUE(
      throws_error([&] { ask("get_input_info"); }, ErrorKind::kUsage, "cannot be listed over RPC"));
}

class CreateExecutorTest : public testing::TestWithParam<const char*> {
 protected:
  CreateExecutorTest() { add_executors(registry_); }
  Value create(const std::vector<Value>& arguments) {
    return registry_.find(GetParam())->call(arguments);
  }

  Registry registry_;
  Value library_ = std::shared_ptr<RemoteModule>(std::make_shared<LibraryModule>(library()));
};

TEST_P(CreateExecutorTest, MakesAnExecutorForTheCpu) {
  const auto module = std::get<std::shared_ptr<RemoteModule>>(
      create({graph(), library_, number(kDLCPU), number(0), number(kDLCPU), number(0)}));
  call(module, "set_input", {"x", given({1, 2, 3, 4})});
  call(module, "run");
  EXPECT_TRUE(has_elements(values_of(call(module, "get_output", {number(0)})), {-1, -2, -3, -4}));
}

TEST_P(CreateExecutorTest, RefusesOtherDevicesAndModules) {
  const Value executor = make_graph_executor(library(), graph());
  EXPECT_TRUE(throws_error([&] { create({graph(), library_, number(8), number(0)}); },
                           ErrorKind::kMismatch, "device type 8 is none of this server's"));
  EXPECT_TRUE(
      throws_error([&] { create({graph(), library_, number(1), number(0), number(9), number(0)}); },
                   ErrorKind::kMismatch, "device type 9"));
  EXPECT_TRUE(throws_error([&] { create({graph(), executor, number(1), number(0)}); },
                           ErrorKind::kMismatch, "of kind GraphExecutor"));
  EXPECT_TRUE(
      throws_error([&] { create({graph(), library_}); }, ErrorKind::kMismatch, "2 arguments"));
  EXPECT_TRUE(throws_error([&] { create({"{", library_, number(1), number(0)}); },
                           ErrorKind::kFormat, "the graph for library"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, CreateExecutorTest,
                         testing::Values("tvm.graph_executor.create",
                                         "tvm.graph_executor_debug.create"));

}  // namespace
}  // namespace run_model::rpc
