// Puts a wrong weight into one node of SqueezeNet after another, and lets check_zoo's search find
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "run_model/check_zoo/judge.h"
#include "run_model/check_zoo/locate_departure.h"
#include "runtime/loading/params_file.h"
#include "tests/temporary_folder.h"

namespace run_model {
namespace {

const std::filesystem::path kSource = RUN_MODEL_SOURCE_DIR;
const std::filesystem::path kArtifact = kSource / "artifacts/squeezenet1_1/native";

class LocateSqueezenetTest : public ::testing::Test {
 protected:
  LocateSqueezenetTest()
      : references_(read_npz(kSource / "build/zoo/intermediates/squeezenet1_1/dam.npz")),
        golden_(read_golden_case(kSource / "artifacts/golden/squeezenet1_1/dam.json")),
        params_(TemporaryFolder::read(kArtifact / "model.params")) {}

  std::optional<Departure> locate(const std::filesystem::path& params) const {
    DebugExecutor executor({kArtifact / "model.so", kArtifact / "model.json", params});
    fill_input(executor, golden_, kSource / "images");
    return find_departure(executor.nodes(), match_nodes(executor, references_));
  }

  // For each node that has parameters, the largest of them: the weights of a convolution.
  std::map<std::size_t, Param> weights() const {
    std::map<std::string, Param> by_name;
    for (const Param& param : parse_params(std::as_bytes(std::span(params_)), "parameters")) {
      by_name[param.name] = param;
    }
    const DebugExecutor executor(
        {kArtifact / "model.so", kArtifact / "model.json", kArtifact / "model.params"});
    std::map<std::size_t, Param> largest;
    for (std::size_t i = 0; i < executor.nodes().size(); ++i) {
      for (const TensorInfo& input : executor.nodes()[i].inputs) {
        const auto found = by_name.find(input.name);
        if (found == by_name.end()) continue;
        if (found->second.data.size() > largest[i].data.size()) largest[i] = found->second;
      }
    }
    return largest;
  }

  // The parameters with an eighth of one tensor moved by half of its largest weight.
  std::filesystem::path spoilt(const Param& param) const {
    std::string bytes = params_;
    const std::size_t start =
        static_cast<std::size_t>(reinterpret_cast<const char*>(param.data.data()) - params_.data());
    std::vector<float> values(param.data.size() / sizeof(float));
    std::memcpy(values.data(), &bytes[start], param.data.size());
    float largest = 0;
    for (const float value : values) largest = std::max(largest, std::abs(value));
    for (std::size_t i = values.size() / 3; i < values.size() / 3 + values.size() / 8; ++i) {
      values[i] += largest / 2;
    }
    std::memcpy(&bytes[start], values.data(), param.data.size());
    return folder_.write("model.params", bytes);
  }

  TemporaryFolder folder_;
  ReferenceTensors references_;
  GoldenCase golden_;
  std::string params_;
};

TEST_F(LocateSqueezenetTest, NothingDepartsInTheRightOne) {
  EXPECT_FALSE(locate(kArtifact / "model.params").has_value());
}

TEST_F(LocateSqueezenetTest, NamesEveryNodeWithWrongWeights) {
  const std::map<std::size_t, Param> all = weights();
  EXPECT_EQ(all.size(), 26U);  // SqueezeNet's convolutions
  for (const auto& [node, param] : all) {
    const auto departure = locate(spoilt(param));
    ASSERT_TRUE(departure.has_value()) << "node " << node;
    EXPECT_EQ(departure->node, node);
  }
}

}  // namespace
}  // namespace run_model
