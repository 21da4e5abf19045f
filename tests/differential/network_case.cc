#include "tests/differential/network_case.h"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

namespace run_model {
namespace {

namespace fs = std::filesystem;

NetworkCase read_case(const fs::path& folder, const nlohmann::json& description) {
  NetworkCase network;
  auto file = [&](const char* key) {
    return description.contains(key) ? folder / description[key].get<std::string>() : fs::path();
  };
  network.files = {file("library"), file("graph"), file("params")};
  network.inputs = description["inputs"].get<std::vector<std::string>>();
  network.writable_outputs = description["writable_outputs"].get<std::vector<bool>>();
  network.refused = description.value("refused", "");
  for (int i = 0; i < description["input_sets"].get<int>(); ++i) {
    std::string suffix = "_" + std::to_string(i) + ".npz";
    network.input_sets.push_back(read_npz(folder / ("inputs" + suffix)));
    network.expected.push_back(read_npz(folder / ("expected" + suffix)));
    if (description["nodes"].get<bool>()) {
      network.nodes.push_back(read_npz(folder / ("nodes" + suffix)));
    }
  }
  return network;
}

}  // namespace

fs::path networks_folder() { return RUN_MODEL_NETWORKS_DIR; }

void NetworkTest::SetUp() {
  fs::path folder = networks_folder() / GetParam();
  std::ifstream stream(folder / "case.json");
  if (!stream) {
    GTEST_SKIP() << "network " << GetParam() << " was not made in " << networks_folder()
                 << ": TVM is not set up; run scripts/test.sh";
  }
  auto description = nlohmann::json::parse(stream);
  if (description.contains("skipped")) {
    GTEST_SKIP() << "network " << GetParam() << ": " << description["skipped"].get<std::string>();
  }
  network_ = read_case(folder, description);
}

DebugExecutor NetworkTest::executor(int threads) const {
  ThreadPoolOptions options;
  options.threads = threads;
  return DebugExecutor(network_.files, {std::make_shared<ThreadPool>(options)});
}

void NetworkTest::set_inputs(GraphExecutor& model, std::size_t index) const {
  for (const NamedTensor& input : network_.input_sets.at(index)) {
    model.set_input(input.name, input.tensor);
  }
}

void NetworkTest::expect_outputs(const GraphExecutor& model, std::size_t index) const {
  const std::vector<NamedTensor>& expected = network_.expected.at(index);
  ASSERT_EQ(model.outputs().size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    std::string name = "output_" + std::to_string(i);
    EXPECT_TRUE(same_tensor(model.output(i), find_tensor(expected, name)))
        << name << " for input set " << index;
  }
}

testing::AssertionResult same_tensor(const Tensor& actual, const Tensor& expected) {
  auto form = [](const Tensor& tensor) {
    return dtype_name(tensor.dtype()) + " " + shape_name(tensor.shape());
  };
  if (form(actual) != form(expected)) {
    return testing::AssertionFailure() << form(actual) << " instead of " << form(expected);
  }
  const auto* a = static_cast<const unsigned char*>(actual.data());
  const auto* b = static_cast<const unsigned char*>(expected.data());
  std::size_t different = 0;
  for (std::size_t i = 0; i < expected.nbytes(); ++i) different += a[i] != b[i];
  if (different == 0) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << different << " of " << expected.nbytes() << " bytes of " << form(expected) << " differ";
}

const Tensor& find_tensor(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const NamedTensor& named : tensors) {
    if (named.name == name) return named.tensor;
  }
  throw std::out_of_range("no tensor " + name);
}

std::string network_test_name(const testing::TestParamInfo<const char*>& info) {
  return info.param;
}

}  // namespace run_model
