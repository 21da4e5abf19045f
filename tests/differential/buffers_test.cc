// Memory that goes in and out of the executor without a copy, and inputs that do not fit.
#include <gmock/gmock.h>

#include <cstring>
#include <optional>

#include <run_model/error.h>
#include "tests/differential/network_case.h"
#include "tests/differential/network_names.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

class Buffers : public NetworkTest {};

TEST_P(Buffers, InputsAreReadInPlace) {
  GraphExecutor model = executor();
  std::vector<Tensor> mine;
  for (std::size_t i = 0; i < model.inputs().size(); ++i) {
    mine.push_back(Tensor::empty(model.inputs()[i].shape, model.inputs()[i].dtype));
    model.set_input_zero_copy(i, mine[i]);
  }
  for (std::size_t set : {0, 1}) {
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const Tensor& values = find_tensor(network_.input_sets[set], network_.inputs[i]);
      std::memcpy(mine[i].data(), values.data(), values.nbytes());
    }
    model.run();
    expect_outputs(model, set);
  }
  // Back to copying: the caller's memory is no longer looked at.
  set_inputs(model, 0);
  for (Tensor& tensor : mine) std::memset(tensor.data(), 1, tensor.nbytes());
  model.run();
  expect_outputs(model, 0);
}

TEST_P(Buffers, OutputsAreWrittenInPlace) {
  for (std::size_t i = 0; i < network_.expected[0].size(); ++i) {
    GraphExecutor model = executor();
    set_inputs(model, 1);
    const TensorInfo& info = model.outputs()[i];
    Tensor mine = Tensor::empty(info.shape, info.dtype);
    if (!network_.writable_outputs[i]) {
      EXPECT_TRUE(throws_error([&] { model.set_output_zero_copy(i, mine); }, ErrorKind::kMismatch,
                               "is an input or a parameter itself"));
      model.run();
      expect_outputs(model, 1);
      continue;
    }
    model.set_output_zero_copy(i, mine);
    model.run();
    EXPECT_TRUE(same_tensor(mine, find_tensor(network_.expected[1], info.name))) << info.name;
    EXPECT_EQ(model.output(i).data(), mine.data());
    expect_outputs(model, 1);
  }
}

TEST_P(Buffers, OutputsOutliveTheExecutor) {
  std::vector<DLManagedTensor*> handed_out;
  {
    GraphExecutor model = executor();
    set_inputs(model, 0);
    model.run();
    for (std::size_t i = 0; i < model.outputs().size(); ++i) {
      handed_out.push_back(model.output(i).to_dlpack());
    }
  }
  for (std::size_t i = 0; i < handed_out.size(); ++i) {
    Tensor taken_over = Tensor::from_dlpack(handed_out[i]);
    std::string name = "output_" + std::to_string(i);
    EXPECT_TRUE(same_tensor(taken_over, find_tensor(network_.expected[0], name))) << name;
  }
}

TEST_P(Buffers, UnsetInputsAreRefused) {
  for (std::size_t left_out = 0; left_out < network_.inputs.size(); ++left_out) {
    GraphExecutor model = executor();
    for (std::size_t i = 0; i < network_.inputs.size(); ++i) {
      if (i == left_out) continue;
      model.set_input(i, find_tensor(network_.input_sets[0], network_.inputs[i]));
    }
    EXPECT_TRUE(
        throws_error([&] { model.run(); }, ErrorKind::kMismatch, network_.inputs[left_out]));
  }
}

TEST_P(Buffers, InputsOfAnotherFormAreRefused) {
  GraphExecutor model = executor();
  set_inputs(model, 0);
  for (std::size_t i = 0; i < model.inputs().size(); ++i) {
    const TensorInfo& info = model.inputs()[i];
    std::vector<std::int64_t> longer = info.shape;
    longer.push_back(1);  // as many elements, another shape
    DLDataType other = info.dtype;
    other.code = other.code == kDLInt ? kDLUInt : kDLInt;
    for (const Tensor& wrong :
         {Tensor::empty(longer, info.dtype), Tensor::empty(info.shape, other)}) {
      for (bool copy : {true, false}) {
        EXPECT_TRUE(throws_error(
            [&] { copy ? model.set_input(i, wrong) : model.set_input_zero_copy(i, wrong); },
            ErrorKind::kMismatch, {info.name, shape_name(info.shape)}));
      }
    }
  }
  for (const std::string& name : network_.inputs) {
    EXPECT_TRUE(
        throws_error([&] { model.input_index("no such input"); }, ErrorKind::kMismatch, name));
  }
  model.run();
  expect_outputs(model, 0);
}

INSTANTIATE_TEST_SUITE_P(Network, Buffers, testing::ValuesIn(kNetworkNames), network_test_name);

}  // namespace
}  // namespace run_model
