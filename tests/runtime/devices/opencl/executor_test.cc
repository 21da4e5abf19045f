// Graphs on the first OpenCL device of this machine, which has to have one (Debian:
// pocl-opencl-icd), with kernels and host functions written by hand.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <run_model/debug_executor.h>
#include <run_model/error.h>
#include "tests/runtime/executor/graph_executor_fixture.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using Floats = std::vector<float>;

constexpr int kCpu = kDLCPU;
constexpr int kDevice = kDLOpenCL;

// As graph_of, with the device of each entry.
json placed(json graph, const std::vector<int>& devices) {
  graph["attrs"]["device_index"][1] = devices;
  return graph;
}

class OpenClExecutorTest : public GraphExecutorTest {
 protected:
  ModelFiles device_files(const json& graph, const std::string& params = "",
                          const char* library = DEVICE_MODEL) {
    ModelFiles made = files(graph, params);
    made.library = library;
    return made;
  }

  // y = x + w on the device.
  static json add_on_device() { return placed(add_graph(), {kDevice, kDevice, kDevice}); }
  // y = f(x), all on the device.
  static json call_on_device(const std::string& function) {
    return placed(graph_of({input_node("x"), call_node("y", function, {{0, 0}})}, {0, 1}, {{1, 0}}),
                  {kDevice, kDevice});
  }

  Floats result_of(const std::string& function, const Floats& input) {
    GraphExecutor executor(device_files(call_on_device(function)));
    executor.set_input(0, vector_of(input));
    executor.run();
    return values_of(executor.output(0));
  }
};

TEST_F(OpenClExecutorTest, TakesAndGivesTensorsOfTheHost) {
  for (const bool aligned : {true, false}) {
    GraphExecutor executor(device_files(add_on_device(), add_params(aligned)));
    EXPECT_EQ(executor.memory().device_params, executor.memory().device_params / 4 * 4);
    EXPECT_GE(executor.memory().device_params, 16U);
    EXPECT_GE(executor.memory().device_activations, 32U);
    EXPECT_EQ(executor.memory().activations, 0U);
    ASSERT_EQ(executor.devices().size(), 1U);
    EXPECT_TRUE(executor.devices()[0].starts_with("opencl:0 ("));
    for (const float x : {10.0F, 20.0F, 30.0F}) {
      executor.set_input("x", vector_of({x, x, x, x}));
      executor.run();
      EXPECT_EQ(values_of(executor.output(0)), (Floats{x + 1, x + 2, x + 3, x + 4}));
    }
  }
}

TEST_F(OpenClExecutorTest, ReadsAndWritesWhatACallerKeeps) {
  GraphExecutor executor(device_files(add_on_device(), add_params(true)));
  const Tensor input = executor.input(0);
  const Tensor output = executor.output(0);
  EXPECT_EQ(values_of(input), (Floats{0, 0, 0, 0}));
  for (const float x : {1.0F, 2.0F}) {
    input.elements<float>()[0] = x;
    executor.run();
    EXPECT_EQ(values_of(output), (Floats{x + 1, 2, 3, 4}));
  }
  const Tensor own_input = vector_of({5, 5, 5, 5});
  const Tensor own_output = vector_of({0, 0, 0, 0});
  executor.set_input_zero_copy(0, own_input);
  executor.set_output_zero_copy(0, own_output);
  executor.run();
  EXPECT_EQ(values_of(own_output), (Floats{6, 7, 8, 9}));
  own_input.elements<float>()[3] = 0;
  executor.run_async();
  executor.wait();
  EXPECT_EQ(values_of(own_output), (Floats{6, 7, 8, 4}));
}

TEST_F(OpenClExecutorTest, LendsWorkspaceOnTheDevice) {
  EXPECT_EQ(result_of("fused_four_times", {1, 2, 3, 4}), (Floats{4, 8, 12, 16}));
}

TEST_F(OpenClExecutorTest, PlacesAGraphThatSaysNothingWhereItsLibraryComputes) {
  json graph = add_on_device();
  graph["attrs"].erase("device_index");
  GraphExecutor executor(device_files(graph, add_params(true)));
  executor.set_input("x", vector_of({1, 1, 1, 1}));
  executor.run();
  EXPECT_EQ(values_of(executor.output(0)), (Floats{2, 3, 4, 5}));
  EXPECT_EQ(executor.devices().size(), 1U);
}

// x (CPU) → device: + w → CPU: negated → device: times four → CPU.
TEST_F(OpenClExecutorTest, CopiesBetweenDevices) {
  const json graph = placed(
      graph_of(
          {input_node("x"), input_node("w"), call_node("up", "__copy", {{0, 0}}),
           call_node("sum", "fused_add", {{2, 0}, {1, 0}}), call_node("down", "__copy", {{3, 0}}),
           call_node("negated", "fused_negate", {{4, 0}}), call_node("again", "__copy", {{5, 0}}),
           call_node("four", "fused_four_times", {{6, 0}}), call_node("last", "__copy", {{7, 0}})},
          {0, 1, 2, 3, 4, 5, 2, 6, 7}, {{8, 0}, {3, 0}}),
      {kCpu, kDevice, kDevice, kDevice, kCpu, kCpu, kDevice, kDevice, kCpu});
  for (const bool plan_memory : {true, false}) {
    GraphExecutor executor(device_files(graph, add_params(true)), {.plan_memory = plan_memory});
    for (const float x : {1.0F, 2.0F, 3.0F}) {
      executor.set_input("x", vector_of({x, x, x, x}));
      executor.run();
      EXPECT_EQ(values_of(executor.output(0)),
                (Floats{-4 * (x + 1), -4 * (x + 2), -4 * (x + 3), -4 * (x + 4)}));
      EXPECT_EQ(values_of(executor.output(1)), (Floats{x + 1, x + 2, x + 3, x + 4}));
    }
    EXPECT_GT(executor.memory().activations, 0U);
  }
}

TEST_F(OpenClExecutorTest, ShowsNodesAndTheirTimes) {
  DebugExecutor executor(device_files(add_on_device(), add_params(true)));
  executor.set_input("x", vector_of({1, 1, 1, 1}));
  EXPECT_EQ(executor.nodes()[0].device, "opencl:0");
  const auto seconds = executor.run_node_timed(0);
  ASSERT_TRUE(seconds.has_value());
  EXPECT_GT(*seconds, 0);
  EXPECT_LT(*seconds, 60);
  EXPECT_EQ(values_of(executor.node_output(0, 0)), (Floats{2, 3, 4, 5}));
  EXPECT_EQ(values_of(executor.output(0)), (Floats{2, 3, 4, 5}));
  const Tensor weights = executor.argument(*executor.argument_index("w"));
  EXPECT_EQ(values_of(weights), (Floats{1, 2, 3, 4}));
  weights.elements<float>()[0] = 100;
  executor.run_node(0);
  EXPECT_EQ(values_of(executor.output(0)), (Floats{101, 3, 4, 5}));
  executor.set_argument(1, vector_of({0, 0, 0, 0}));
  executor.run();
  EXPECT_EQ(values_of(executor.output(0)), (Floats{1, 1, 1, 1}));
}

TEST_F(OpenClExecutorTest, ThreadsShareADevice) {
  const auto work = [this](int seed, const ModelFiles& model, bool& good) {
    GraphExecutor executor(model);
    for (int i = 0; i < 50; ++i) {
      const auto x = static_cast<float>(seed + i);
      executor.set_input("x", vector_of({x, x, x, x}));
      executor.run();
      if (values_of(executor.output(0)) != Floats{x + 1, x + 2, x + 3, x + 4}) good = false;
    }
  };
  const ModelFiles model = device_files(add_on_device(), add_params(true));
  bool first = true;
  bool second = true;
  std::thread other([&] { work(1000, model, first); });
  work(2000, model, second);
  other.join();
  EXPECT_TRUE(first);
  EXPECT_TRUE(second);
}

TEST_F(OpenClExecutorTest, RefusesLaunchesBeforeTheDeviceSeesThem) {
  EXPECT_TRUE(throws_error([&] { result_of("fused_group_too_large", {1, 2, 3, 4}); },
                           ErrorKind::kIncompatible,
                           {"'add_kernel' asks for groups of 16777216", "device opencl:0 ("}));
  EXPECT_TRUE(throws_error([&] { result_of("fused_argument_missing", {1, 2, 3, 4}); },
                           ErrorKind::kModel,
                           {"'add_kernel' is called with 4 arguments, expected 3 and 2"}));
  EXPECT_TRUE(throws_error([&] { result_of("fused_number_too_large", {1, 2, 3, 4}); },
                           ErrorKind::kModel,
                           {"'scale_kernel' takes int32 as argument 3", "1099511627776"}));
  EXPECT_TRUE(throws_error([&] { result_of("fused_unknown_kernel", {1, 2, 3, 4}); },
                           ErrorKind::kModel, {"'no_kernel'"}));
}

TEST_F(OpenClExecutorTest, SaysWhatIsWrongWithDevicesAndCode) {
  const json graph = add_on_device();
  const auto load = [&](const json& what, ExecutorOptions options, const char* library) {
    GraphExecutor executor(device_files(what, add_params(true), library), options);
  };
  EXPECT_TRUE(throws_error([&] { load(graph, {.devices = {{kDLOpenCL, 99}}}, DEVICE_MODEL); },
                           ErrorKind::kIncompatible, {"there is no device opencl:99"}));
  EXPECT_TRUE(throws_error([&] { load(graph, {.devices = {{kDLCPU, 0}}}, DEVICE_MODEL); },
                           ErrorKind::kMismatch, {"was compiled for opencl, not for cpu"}));
  EXPECT_TRUE(throws_error([&] { load(graph, {}, BROKEN_DEVICE_MODEL); }, ErrorKind::kIncompatible,
                           {"cannot compile kernel 'add_kernel'", "undeclared"}));
  EXPECT_TRUE(throws_error([&] { load(graph, {}, EXECUTOR_MODEL); }, ErrorKind::kMismatch,
                           {"the graph computes on opencl, but library", "has no code for it"}));
}

}  // namespace
}  // namespace run_model
