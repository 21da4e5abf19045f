#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <run_model/npy.h>
#include <run_model/npz.h>
#include "tests/run_model/spawn.h"
#include "tests/temporary_folder.h"

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const std::filesystem::path kSource = RUN_MODEL_SOURCE_DIR;
const std::filesystem::path kGolden = kSource / "artifacts/golden/squeezenet1_1";

// Float32 kernels that sum in another order than ONNX Runtime's differ in the sixth digit.
constexpr double kTolerance = 2e-5;

class SqueezenetTest : public ::testing::TestWithParam<std::string> {
 protected:
  ProgramResult classify(const json& golden, const std::vector<std::string>& flags) const {
    const std::string picture = golden["picture"]["file"];
    std::vector<std::string> args{"squeezenet1_1", (kSource / "artifacts").string(),
                                  (kSource / "images" / picture).string(),
                                  (kSource / "labels/imagenet.txt").string(), "--target=native"};
    args.insert(args.end(), flags.begin(), flags.end());
    return spawn(RUN_MODEL_PROGRAM, args);
  }

  TemporaryFolder folder_;
};

TEST_P(SqueezenetTest, AgreesWithOnnxRuntime) {
  std::ifstream file(kGolden / (GetParam() + ".json"));
  ASSERT_TRUE(file.good());
  const json golden = json::parse(file);
  const std::string outputs_file = (folder_ / "out.npz").string();
  const ProgramResult result = classify(golden, {"--json", "--outputs", outputs_file});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json report = json::parse(result.out);

  EXPECT_EQ(report["input"]["range"]["min"], golden["input"]["min"]);
  EXPECT_EQ(report["input"]["range"]["max"], golden["input"]["max"]);
  ASSERT_EQ(report["top"].size(), golden["top"].size());
  for (std::size_t i = 0; i < report["top"].size(); ++i) {
    EXPECT_EQ(report["top"][i]["index"], golden["top"][i]["index"]);
    EXPECT_EQ(report["top"][i]["label"], golden["top"][i]["label"]);
    EXPECT_NEAR(report["top"][i]["probability"].get<double>(),
                golden["top"][i]["probability"].get<double>(), kTolerance);
  }

  const Tensor expected = read_npy(kGolden / (GetParam() + ".npy"));
  const Tensor actual = read_npz(outputs_file).at(0).tensor;
  ASSERT_EQ(actual.shape(), expected.shape());
  for (std::size_t i = 0; i < expected.elements<float>().size(); ++i) {
    EXPECT_NEAR(actual.elements<float>()[i], expected.elements<float>()[i], kTolerance) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Pictures, SqueezenetTest,
                         ::testing::Values("camera", "chelsea", "coffee", "rocket"));

TEST_F(SqueezenetTest, SaysTheCat) {
  const json chelsea{{"picture", {{"file", "chelsea.png"}}}};
  const ProgramResult result = classify(chelsea, {});
  EXPECT_THAT(result.out, HasSubstr("Mean: B=104 G=117 R=123\n"));
  EXPECT_THAT(result.out, HasSubstr("\nPredicted class: 282 (tiger cat)\n"));
}

// The same preprocessing by flags as by metadata.
TEST_F(SqueezenetTest, FlagsSayWhatTheMetadataSays) {
  const json chelsea{{"picture", {{"file", "chelsea.png"}}}};
  const json by_metadata = json::parse(classify(chelsea, {"--json"}).out);
  const json by_flags = json::parse(
      classify(chelsea, {"--bgr", "--mean", "104", "117", "123", "--no-normalize", "--json"}).out);
  EXPECT_EQ(by_flags["top"], by_metadata["top"]);
}

}  // namespace
}  // namespace run_model
