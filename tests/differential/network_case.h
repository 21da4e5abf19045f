// A network that make_networks compiled, with inputs and what TVM's own executor answered.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include <run_model/debug_executor.h>
#include <run_model/npz.h>

namespace run_model {

struct NetworkCase {
  ModelFiles files;
  std::vector<std::string> inputs;  // in the order in which the network declares them
  std::vector<std::vector<NamedTensor>> input_sets;
  std::vector<std::vector<NamedTensor>> expected;  // of each input set: output_0, output_1 …
  // Of each input set: what every node wrote, named "<executable node>_<output>".
  std::vector<std::vector<NamedTensor>> nodes;
  std::vector<bool> writable_outputs;  // false: (a view of) an input or a parameter
  std::string refused;  // what this runtime's refusal names; empty for those that run
};

// Where make_networks wrote to.
std::filesystem::path networks_folder();

// A fixture for tests over the names in network_names.h: skips where a network is not there.
class NetworkTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override;

  DebugExecutor executor(int threads = 2) const;

  // Copies input set `index` into the executor, by name.
  void set_inputs(GraphExecutor& model, std::size_t index) const;

  // Expects every output to be, byte for byte, what TVM computed for input set `index`.
  void expect_outputs(const GraphExecutor& model, std::size_t index) const;

  NetworkCase network_;
};

// Element type, shape and bytes.
testing::AssertionResult same_tensor(const Tensor& actual, const Tensor& expected);

// The tensor `name`, which has to be there.
const Tensor& find_tensor(const std::vector<NamedTensor>& tensors, const std::string& name);

std::string network_test_name(const testing::TestParamInfo<const char*>& info);

}  // namespace run_model
