// The built program, run as a user runs it, on a small stand-in for a compiled model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <run_model/npy.h>
#include <run_model/npz.h>
#include "tests/has_elements.h"
#include "tests/run_model/picture_artifact.h"
#include "tests/run_model/spawn.h"

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using ::testing::StartsWith;
using Strings = std::vector<std::string>;

Strings lines_of(const std::string& text) {
  Strings lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    lines.push_back(text.substr(start, end - start));
    start = end == text.npos ? text.size() : end + 1;
  }
  return lines;
}

class ProgramTest : public ::testing::Test {
 protected:
  ProgramResult run(const Strings& args, const std::string& out_file = "") const {
    return spawn(RUN_MODEL_PROGRAM, args, out_file);
  }

  // Classifies the picture, with more flags.
  ProgramResult classify(const Strings& flags) const {
    Strings args{"net", artifact_.folder().path().string(), path("red.ppm"), path("labels.txt")};
    args.insert(args.end(), flags.begin(), flags.end());
    return run(args);
  }

  std::string path(const std::string& name) const { return artifact_.path(name); }

  PictureArtifact artifact_;
};

TEST_F(ProgramTest, ReportsAsText) {
  const ProgramResult result =
      classify({"--no-normalize", "--std", "1600", "1600", "1600", "--threads=1"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(
      lines_of(result.out),
      ElementsAre("Original image: 8x6x3", "Resized to: 5x4", "Final image size: 4x4x3",
                  "Color order: RGB", "Pixel scaling: 0 to 255 (Caffe-style)",
                  "Mean (R,G,B): [0, 0, 0]", "Std (R,G,B):  [1600, 1600, 1600]",
                  "Input tensor range: [0.00625, 0.125], mean: 0.0479167", "Output shape: 1 3",
                  "Logits range: [0.1, 2], mean: 0.766667",
                  MatchesRegex("Time: load [0-9.]+ ms, preprocess [0-9.]+ ms, "
                               "run [0-9.]+ ms \\(1 thread\\)"),
                  "", "===== Running net =====", "Top-3 Predictions:",
                  "  1) id=0  p=0.760533  red things", "  2) id=2  p=0.125715  blue things",
                  "  3) id=1  p=0.113752  green things", "Predicted class: 0 (red things)"));
}

TEST_F(ProgramTest, SubtractsInTheNetworksOrder) {
  const ProgramResult caffe =
      classify({"--bgr", "--no-normalize", "--mean", "20", "0", "0", "--std=1600,1600,1600"});
  EXPECT_EQ(caffe.exit_code, 0) << caffe.err;
  EXPECT_THAT(caffe.out, HasSubstr("Color order: BGR\n"));
  EXPECT_THAT(caffe.out, HasSubstr("Mean: B=20 G=0 R=0\nStd: B=1600 G=1600 R=1600\n"));
  EXPECT_THAT(caffe.out, HasSubstr("Input tensor range: [0, 0.125]"));
  // The network's third channel is red now.
  EXPECT_THAT(caffe.out, HasSubstr("Predicted class: 2 (blue things)"));

  const ProgramResult rgb = classify({"--mean", "20", "0", "0", "--mean-order=rgb", "--bgr",
                                      "--std=1600,1600,1600", "--no-normalize"});
  EXPECT_THAT(rgb.out, HasSubstr("Mean: B=0 G=0 R=20\n"));
  EXPECT_THAT(rgb.out, HasSubstr("Input tensor range: [0.00625, 0.1125]"));
}

TEST_F(ProgramTest, OrderOfFlagsDoesNotMatter) {
  const ProgramResult first = classify({"--normalize", "--mean", "0", "0", "0", "--topk=1"});
  const ProgramResult last = classify({"--topk=1", "--mean", "0", "0", "0", "--normalize"});
  EXPECT_THAT(first.out,
              HasSubstr("Pixel scaling: 0.0 to 1.0 (PyTorch-style)\n"
                        "Mean (R,G,B): [0, 0, 0]\nStd (R,G,B):  [0.229, 0.224, 0.225]\n"));
  EXPECT_EQ(first.out.substr(0, first.out.find("Time")), last.out.substr(0, last.out.find("Time")));
}

TEST_F(ProgramTest, ReportsAsJson) {
  artifact_.write_metadata(PictureArtifact::metadata());
  const ProgramResult result = classify({"--json", "--topk=2"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json report = json::parse(result.out);
  EXPECT_EQ(report["schema_version"], 1);
  EXPECT_EQ(report["model"], "net");
  EXPECT_EQ(report["artifact"]["library"], path("net_tvm.so"));
  EXPECT_EQ(report["artifact"]["metadata"], path("net_tvm.metadata.json"));
  EXPECT_EQ(report["image"]["path"], path("red.ppm"));
  EXPECT_EQ(report["image"]["format"], "PNM");
  EXPECT_EQ(report["image"]["width"], 8);
  EXPECT_EQ(report["image"]["resized"], json({{"width", 5}, {"height", 4}}));
  EXPECT_EQ(report["input"]["name"], "data");
  EXPECT_EQ(report["input"]["shape"], json({1, 3, 4, 4}));
  EXPECT_EQ(report["input"]["layout"], "NCHW");
  EXPECT_EQ(report["input"]["preprocessing"]["color_order"], "BGR");
  EXPECT_EQ(report["input"]["preprocessing"]["std"], json({1600.0, 1600.0, 1600.0}));
  EXPECT_EQ(report["output"]["shape"], json({1, 3}));
  EXPECT_EQ(report["output"]["is_distribution"], false);
  for (const char* stage : {"load", "preprocess", "run"}) {
    EXPECT_GE(report["timing"][stage].get<double>(), 0.0) << stage;
  }
  ASSERT_EQ(report["top"].size(), 2U);
  EXPECT_EQ(report["top"][0]["index"], 2);
  EXPECT_EQ(report["top"][0]["label"], "blue things");
  const double sum = std::exp(2) + std::exp(0.1) + std::exp(0.2);
  EXPECT_NEAR(report["top"][0]["probability"].get<double>(), std::exp(2) / sum, 1e-6);
  EXPECT_EQ(report["top"][1]["index"], 0);
}

TEST_F(ProgramTest, DumpsTheInputAndSavesTheOutputs) {
  const ProgramResult result = classify(
      {"--no-normalize", "--bgr", "--dump-input", path("in.npy"), "--outputs", path("out.npz")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Tensor input = read_npy(path("in.npy"));
  EXPECT_TRUE(has_elements(input.shape(), {1, 3, 4, 4}));
  EXPECT_EQ(input.elements<float>()[0], 20.0F);
  EXPECT_EQ(input.elements<float>()[47], 200.0F);
  const std::vector<NamedTensor> outputs = read_npz(path("out.npz"));
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_EQ(outputs[0].name, "output_0");
  EXPECT_TRUE(has_elements(outputs[0].tensor.elements<float>(), {320, 160, 3200}));
}

TEST_F(ProgramTest, RunsOnTensors) {
  ASSERT_EQ(classify({"--no-normalize", "--dump-input", path("in.npy")}).exit_code, 0);
  const std::vector<NamedTensor> inputs{{"data", read_npy(path("in.npy"))}};
  write_npz(path("in.npz"), inputs);
  for (const char* file : {"in.npy", "in.npz"}) {
    const ProgramResult result = run({"net", artifact_.folder().path().string(), "--inputs",
                                      path(file), "--outputs", path("out.npz")});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, StartsWith("Input data: float32 1 3 4 4\n"
                                       "Output output_0: float32 1 3, range: [160, 3200]"));
    EXPECT_THAT(result.out, HasSubstr("Written: " + path("out.npz")));
    EXPECT_TRUE(
        has_elements(read_npz(path("out.npz")).at(0).tensor.elements<float>(), {3200, 160, 320}));
  }
  const ProgramResult result = run({"net", artifact_.folder().path().string(), "-i", path("in.npz"),
                                    "-o", path("out.npz"), "--json"});
  const json report = json::parse(result.out);
  EXPECT_EQ(report["inputs"][0]["name"], "data");
  EXPECT_EQ(report["outputs"][0]["range"]["max"], 3200.0);
  EXPECT_EQ(report["outputs_file"], path("out.npz"));
}

TEST_F(ProgramTest, InspectsWithoutRunning) {
  artifact_.write_metadata(PictureArtifact::metadata());
  const ProgramResult text = run({"--inspect", path("net_tvm")});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr("Model:        net\n"));
  EXPECT_THAT(text.out, HasSubstr("Input:        data  float32 [1, 3, 4, 4]\n"));
  EXPECT_THAT(text.out, HasSubstr("Parameters:   1 (12 B)\n"));
  EXPECT_THAT(text.out, HasSubstr("Runs here:    yes"));
  const json report = json::parse(run({"--inspect", path("net_tvm.so"), "--json"}).out);
  EXPECT_EQ(report["graph"]["inputs"][0]["shape"], json({1, 3, 4, 4}));
  EXPECT_EQ(report["graph"]["function_calls"], 1);
  EXPECT_EQ(report["library"]["single_file"], false);
  EXPECT_EQ(report["runs_here"], true);
  EXPECT_EQ(report["preprocessing"]["color_order"], "BGR");
}

TEST_F(ProgramTest, InspectionNamesWhatIsWrong) {
  artifact_.call("fused_missing");
  artifact_.folder().write("net_tvm.params", bias_params("other", 3));
  const ProgramResult result = run({"--inspect", path("net_tvm"), "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json report = json::parse(result.out);
  EXPECT_EQ(report["runs_here"], false);
  ASSERT_EQ(report["problems"].size(), 2U);
  EXPECT_THAT(report["problems"][0].get<std::string>(), HasSubstr("'fused_missing'"));
  EXPECT_THAT(report["problems"][1].get<std::string>(), HasSubstr("no parameter 'other'"));
}

TEST_F(ProgramTest, HelpAndVersion) {
  const ProgramResult help = run({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_THAT(help.out, StartsWith("run_model runs a model"));
  EXPECT_THAT(help.out, HasSubstr("  8  model failed while running, or gave NaN or infinity\n"));
  for (const std::string& line : lines_of(help.out)) EXPECT_LE(line.size(), 100U) << line;
  const ProgramResult version = run({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_THAT(version.out, MatchesRegex("run_model [0-9]+\\.[0-9]+\\.[0-9]+\n"));
  EXPECT_THAT(run({"--helpfull"}).out, HasSubstr("-stderrthreshold"));
}

TEST_F(ProgramTest, LogsOnRequestOnly) {
  EXPECT_EQ(classify({"--no-normalize"}).err, "");
  EXPECT_THAT(classify({"--no-normalize", "--v=1"}).err, HasSubstr("loaded_package.cc"));
}

TEST_F(ProgramTest, TheLimitOfAFilesSizeIsAnError) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  // Programs that are started inherit it. The tensor takes 320 bytes, what is said of it less.
  const rlimit small{300, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const ProgramResult result = classify({"--no-normalize", "--dump-input", path("input.npy")});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(result.exit_code, 3) << result.err;
  EXPECT_THAT(result.err, HasSubstr("input.npy': File too large"));
  for (const auto& entry : std::filesystem::directory_iterator(artifact_.folder().path())) {
    EXPECT_THAT(entry.path().filename().string(), Not(StartsWith("input.npy")));
  }
}

TEST_F(ProgramTest, HelpOfWhichOnlyTheFirstLinesAreReadEndsAsOtherToolsDo) {
  const ProgramResult cut =
      spawn("/bin/sh", {"-c", "(sleep 0.1; \"$0\" --help; echo $? >&2) | true", RUN_MODEL_PROGRAM});
  EXPECT_EQ(cut.err, std::to_string(128 + SIGPIPE) + "\n");
  EXPECT_THAT(run({"--help"}, "/dev/full").err, HasSubstr("No space left"));
}

TEST_F(ProgramTest, OutputThatCannotBeWrittenIsAnError) {
  const Strings args{"net", artifact_.folder().path().string(), path("red.ppm"), path("labels.txt"),
                     "--no-normalize"};
  const ProgramResult result = run(args, "/dev/full");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("cannot write to standard output: No space left"));
}

}  // namespace
}  // namespace run_model
