// Executors on memory that the application keeps on the device; each kind of device runs these.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <run_model/device_tensor.h>
#include <run_model/error.h>
#include "tests/runtime/devices/application_memory.h"
#include "tests/runtime/executor/graph_executor_fixture.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using Floats = std::vector<float>;

// What a framework hands over: 4 numbers of float32 unless a test says otherwise.
struct Given {
  explicit Given(void* data, std::uint64_t offset = 0) {
    managed.dl_tensor.data = data;
    managed.dl_tensor.device = kTestedDevice;
    managed.dl_tensor.ndim = 1;
    managed.dl_tensor.dtype = kFloat32;
    managed.dl_tensor.shape = shape.data();
    managed.dl_tensor.byte_offset = offset;
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* own) {
      ++static_cast<Given*>(own->manager_ctx)->deleted;
    };
  }
  Given(const Given&) = delete;
  Given& operator=(const Given&) = delete;

  std::array<std::int64_t, 2> shape{4, 1};
  std::array<std::int64_t, 2> strides{1, 1};
  DLManagedTensor managed{};
  int deleted = 0;
};

class ZeroCopyTest : public GraphExecutorTest {
 protected:
  ZeroCopyTest() { prepare_tested_driver(); }

  // y = x + (1, 2, 3, 4) on the device.
  ModelFiles add_files() {
    json graph = add_graph();
    graph["attrs"]["device_index"][1] = std::vector<int>(3, DEVICE_TYPE);
    ModelFiles made = files(graph, add_params(true));
    made.library = DEVICE_MODEL;
    return made;
  }
  static DeviceTensor tensor_of(const Floats& values) {
    DeviceTensor tensor = DeviceTensor::empty(kTestedDevice, {4}, kFloat32);
    tensor.copy_from(vector_of(values));
    return tensor;
  }
  static Floats on_host(const DeviceTensor& tensor) { return values_of(tensor.to_host()); }
};

TEST_F(ZeroCopyTest, ReadsAndWritesTensorsOfTheDevice) {
  GraphExecutor executor(add_files());
  DeviceTensor input = tensor_of({1, 1, 1, 1});
  const DeviceTensor output = tensor_of({0, 0, 0, 0});
  EXPECT_EQ(input.device().device_type, DEVICE_TYPE);
  executor.set_input_zero_copy(0, input);
  executor.set_output_zero_copy(0, output);
  // Launches are noted at the second run where the device can.
  for (const float x : {1.0F, 2.0F, 3.0F, 4.0F}) {
    input.copy_from(vector_of({x, x, x, x}));
    executor.run();
    EXPECT_EQ(on_host(output), (Floats{x + 1, x + 2, x + 3, x + 4}));
  }
  EXPECT_EQ(values_of(executor.output(0)), (Floats{5, 6, 7, 8}));
  executor.run_async();
  executor.wait();
  EXPECT_EQ(on_host(output), (Floats{5, 6, 7, 8}));
}

TEST_F(ZeroCopyTest, TakesOtherTensorsInTurns) {
  GraphExecutor executor(add_files());
  const std::array<DeviceTensor, 2> states = {tensor_of({0, 0, 0, 0}), tensor_of({9, 9, 9, 9})};
  for (std::size_t i = 0; i < 5; ++i) {
    executor.set_input_zero_copy(0, states[i % 2]);
    executor.set_output_zero_copy(0, states[(i + 1) % 2]);
    executor.run();
  }
  EXPECT_EQ(on_host(states[1]), (Floats{5, 10, 15, 20}));
  EXPECT_EQ(on_host(states[0]), (Floats{4, 8, 12, 16}));
}

TEST_F(ZeroCopyTest, GoesBackToTensorsOfTheHost) {
  GraphExecutor executor(add_files());
  const DeviceTensor input = tensor_of({1, 1, 1, 1});
  const DeviceTensor output = tensor_of({0, 0, 0, 0});
  executor.set_input_zero_copy(0, input);
  executor.set_output_zero_copy(0, output);
  executor.run();
  executor.set_input(0, vector_of({7, 7, 7, 7}));
  executor.run();
  executor.run();
  EXPECT_EQ(on_host(input), (Floats{1, 1, 1, 1})) << "set_input wrote to the caller's memory";
  EXPECT_EQ(on_host(output), (Floats{8, 9, 10, 11}));
  const Tensor host = vector_of({0, 0, 0, 0});
  const Tensor own = vector_of({5, 5, 5, 5});
  executor.set_output_zero_copy(0, host);
  executor.set_input_zero_copy(0, own);
  executor.run();
  EXPECT_EQ(values_of(host), (Floats{6, 7, 8, 9}));
  EXPECT_EQ(on_host(output), (Floats{8, 9, 10, 11})) << "it was not given any more";
  executor.set_input(0, vector_of({0, 0, 0, 0}));
  executor.run();
  EXPECT_EQ(values_of(own), (Floats{5, 5, 5, 5})) << "set_input wrote to the caller's memory";
  EXPECT_EQ(values_of(host), (Floats{1, 2, 3, 4}));
  executor.set_input_zero_copy(0, input);
  executor.run();
  EXPECT_EQ(values_of(host), (Floats{2, 3, 4, 5}));
}

TEST_F(ZeroCopyTest, HandsTensorsFromOneModelToTheNext) {
  GraphExecutor first(add_files());
  GraphExecutor second(add_files());
  const DeviceTensor between = tensor_of({0, 0, 0, 0});
  first.set_output_zero_copy(0, between);
  second.set_input_zero_copy(0, between);
  first.set_input(0, vector_of({1, 1, 1, 1}));
  first.run_async();
  second.run_async();
  first.wait();
  second.wait();
  EXPECT_EQ(values_of(second.output(0)), (Floats{3, 5, 7, 9}));
}

TEST_F(ZeroCopyTest, TakesMemoryOfTheApplication) {
  const std::size_t step = DeviceTensor::alignment(kTestedDevice);
  ApplicationMemory memory(4 * step);
  memory.write(step, {1, 2, 3, 4});
  Given input(memory.data(), step);
  Given output(memory.data(), 3 * step);
  {
    GraphExecutor executor(add_files());
    executor.set_input_zero_copy(0, DeviceTensor::from_dlpack(&input.managed));
    executor.set_output_zero_copy(0, DeviceTensor::from_dlpack(&output.managed));
    for (int i = 0; i < 3; ++i) executor.run();
    EXPECT_EQ(memory.read(3 * step, 4), (Floats{2, 4, 6, 8}));
    memory.write(step, {0, 0, 0, 1});
    executor.run();
    EXPECT_EQ(memory.read(3 * step, 4), (Floats{1, 2, 3, 5}));
    EXPECT_EQ(input.deleted + output.deleted, 0) << "the executor still uses them";
  }
  EXPECT_EQ(input.deleted, 1);
  EXPECT_EQ(output.deleted, 1);
}

TEST_F(ZeroCopyTest, GivesItsMemoryByDlpack) {
  DLManagedTensor* given = tensor_of({4, 3, 2, 1}).to_dlpack();
  EXPECT_EQ(given->dl_tensor.device.device_type, DEVICE_TYPE);
  ASSERT_EQ(given->dl_tensor.ndim, 1);
  EXPECT_EQ(given->dl_tensor.shape[0], 4);
  const DeviceTensor again = DeviceTensor::from_dlpack(given);
  EXPECT_EQ(on_host(again), (Floats{4, 3, 2, 1}));
}

TEST_F(ZeroCopyTest, RefusesWhatCannotBeUsed) {
  const std::size_t step = DeviceTensor::alignment(kTestedDevice);
  ApplicationMemory memory(2 * step);
  const auto refused = [](Given& given, std::initializer_list<std::string_view> texts) {
    EXPECT_TRUE(throws_error([&] { DeviceTensor::from_dlpack(&given.managed); },
                             ErrorKind::kMismatch, texts));
    EXPECT_EQ(given.deleted, 0) << "what is refused stays the caller's";
  };
  Given on_cpu(memory.data());
  on_cpu.managed.dl_tensor.device = {kDLCPU, 0};
  refused(on_cpu, {"a tensor on cpu was given", "Tensor::from_dlpack"});
  Given strided(memory.data());
  strided.strides[0] = 2;
  strided.managed.dl_tensor.strides = strided.strides.data();
  refused(strided, {"a strided tensor was given"});
  Given crooked(memory.data(), 4);
  const std::string_view whose = "the memory that was given as that of device ";
  refused(crooked, {whose, "does not begin at a multiple of " + std::to_string(step) + " bytes",
                    "DeviceTensor::alignment()"});
  Given large(memory.data());
  large.shape[0] = 1 << 20;
  refused(large, {whose, "but 4194304 from byte 0 on are needed"});
  Given none(nullptr);
  refused(none, {whose, " is none", "give a"});
}

TEST_F(ZeroCopyTest, RefusesTensorsThatDoNotFitTheModel) {
  GraphExecutor executor(add_files());
  const DeviceTensor one = tensor_of({0, 0, 0, 0});
  const auto refused = [](const auto& work, std::initializer_list<std::string_view> texts) {
    EXPECT_TRUE(throws_error(work, ErrorKind::kMismatch, texts));
  };
  refused([&] { executor.set_input_zero_copy(0, DeviceTensor()); }, {"an empty tensor", "'x'"});
  const DeviceTensor five = DeviceTensor::empty(kTestedDevice, {5}, kFloat32);
  refused([&] { executor.set_input_zero_copy(0, five); }, {"'x' is float32", "[5]"});
  refused([&] { executor.set_output_zero_copy(0, five); }, {"'output_0' is float32", "[5]"});
  executor.set_input_zero_copy(0, one);
  executor.set_output_zero_copy(0, one);
  refused([&] { executor.run(); }, {"the memory given for 'output_0' overlaps", "in turns"});
  refused([&] { tensor_of({}); }, {"a tensor on", "was given to be copied to it"});
  EXPECT_THROW(executor.set_input_zero_copy(1, one), std::out_of_range);

  GraphExecutor on_cpu(files(add_graph(), add_params(true)));
  refused([&] { on_cpu.set_input_zero_copy(0, one); },
          {"but the model has it in the CPU's memory", "give a tensor of the host"});
}

}  // namespace
}  // namespace run_model
