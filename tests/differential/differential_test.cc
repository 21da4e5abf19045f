// The same compiled network through this runtime and through TVM's graph executor: both run the
// same machine code, so every output has to be equal to the last bit, whatever the thread count.
#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <set>
#include <thread>

#include <run_model/error.h>
#include "runtime/threads/contention.h"
#include "tests/differential/network_case.h"
#include "tests/differential/network_names.h"

namespace run_model {
namespace {

TEST(Networks, AreThoseOfTheList) {
  if (!std::filesystem::exists(networks_folder())) {
    GTEST_SKIP() << "no networks in " << networks_folder()
                 << ": TVM is not set up; run scripts/test.sh";
  }
  std::set<std::string> made;
  for (const auto& folder : std::filesystem::directory_iterator(networks_folder())) {
    if (std::filesystem::exists(folder.path() / "case.json")) made.insert(folder.path().filename());
  }
  std::vector<std::string> listed(kNetworkNames.begin(), kNetworkNames.end());
  listed.insert(listed.end(), kRefusedNetworkNames.begin(), kRefusedNetworkNames.end());
  EXPECT_THAT(made, testing::UnorderedElementsAreArray(listed))
      << "tests/differential/network_names.h and make_networks --list differ";
}

class Differential : public NetworkTest {};
class Refused : public NetworkTest {};

TEST_P(Differential, DescribesInputsAndOutputs) {
  GraphExecutor model = executor();
  std::vector<std::string> names;
  for (const TensorInfo& input : model.inputs()) {
    names.push_back(input.name);
    const Tensor& fed = find_tensor(network_.input_sets[0], input.name);
    EXPECT_EQ(input.shape, fed.shape()) << input.name;
    EXPECT_EQ(dtype_name(input.dtype), dtype_name(fed.dtype())) << input.name;
  }
  EXPECT_EQ(names, network_.inputs);
  ASSERT_EQ(model.outputs().size(), network_.expected[0].size());
  for (const TensorInfo& output : model.outputs()) {
    const Tensor& expected = find_tensor(network_.expected[0], output.name);
    EXPECT_EQ(output.shape, expected.shape()) << output.name;
    EXPECT_EQ(dtype_name(output.dtype), dtype_name(expected.dtype())) << output.name;
  }
}

TEST_P(Differential, OutputsEqualTvms) {
  for (int threads : {1, 2, 3, 8}) {
    SCOPED_TRACE(testing::Message() << threads << " threads");
    GraphExecutor model = executor(threads);
    // The first set again at the end: nothing of the second may be left over.
    for (std::size_t set : {0, 1, 0}) {
      set_inputs(model, set);
      model.run();
      expect_outputs(model, set);
      model.run();
      expect_outputs(model, set);
    }
  }
}

// Loops are cut into more tasks than there are threads then, but for those with barriers.
TEST_P(Differential, OutputsEqualTvmsOnABusyMachine) {
  for (int threads : {2, 5}) {
    SCOPED_TRACE(testing::Message() << threads << " threads");
    GraphExecutor model = executor(threads);
    for (std::size_t set : {0, 1}) {
      set_inputs(model, set);
      note_contention(std::chrono::minutes(1));
      model.run();
      expect_outputs(model, set);
    }
  }
}

TEST_P(Differential, InputsByPositionAndInPlace) {
  GraphExecutor model = executor();
  for (std::size_t i = 0; i < network_.inputs.size(); ++i) {
    ASSERT_EQ(model.input_index(network_.inputs[i]), i);
    model.set_input(i, find_tensor(network_.input_sets[0], network_.inputs[i]));
  }
  model.run();
  expect_outputs(model, 0);

  for (std::size_t i = 0; i < network_.inputs.size(); ++i) {
    const Tensor& values = find_tensor(network_.input_sets[1], network_.inputs[i]);
    std::memcpy(model.input(i).data(), values.data(), values.nbytes());
  }
  model.run();
  expect_outputs(model, 1);
}

TEST_P(Differential, NodeByNode) {
  DebugExecutor model = executor();
  for (std::size_t set : {0, 1}) {
    set_inputs(model, set);
    for (std::size_t node = 0; node < model.nodes().size(); ++node) {
      model.run_node(node);
      if (network_.nodes.empty()) continue;
      for (std::size_t output = 0; output < model.nodes()[node].outputs.size(); ++output) {
        std::string name = std::to_string(node) + "_" + std::to_string(output);
        const Tensor& expected = find_tensor(network_.nodes[set], name);
        EXPECT_TRUE(same_tensor(model.node_output(node, output), expected))
            << "node " << node << " " << model.nodes()[node].name << ", output " << output;
      }
    }
    expect_outputs(model, set);
  }
}

TEST_P(Differential, TwoExecutorsAtTheSameTime) {
  auto pool = std::make_shared<ThreadPool>(ThreadPoolOptions{.threads = 2});
  std::vector<GraphExecutor> models;
  for (std::size_t i = 0; i < 2; ++i) models.emplace_back(network_.files, ExecutorOptions{pool});
  std::vector<std::thread> users;
  for (std::size_t i = 0; i < 2; ++i) {
    users.emplace_back([&, i] {
      for (int round = 0; round < 3; ++round) {
        set_inputs(models[i], i);
        models[i].run();
      }
    });
  }
  for (std::thread& user : users) user.join();
  for (std::size_t i = 0; i < 2; ++i) expect_outputs(models[i], i);
}

TEST_P(Refused, NamesTheFunctionThatItLacks) {
  ASSERT_NE(network_.refused, "");
  try {
    GraphExecutor model = executor();
    set_inputs(model, 0);
    model.run();
    FAIL() << "ran without " << network_.refused;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(network_.refused));
    EXPECT_THAT(error.kind(), testing::AnyOf(ErrorKind::kIncompatible, ErrorKind::kModel));
  }
}

INSTANTIATE_TEST_SUITE_P(Network, Differential, testing::ValuesIn(kNetworkNames),
                         network_test_name);
INSTANTIATE_TEST_SUITE_P(Network, Refused, testing::ValuesIn(kRefusedNetworkNames),
                         network_test_name);

}  // namespace
}  // namespace run_model
