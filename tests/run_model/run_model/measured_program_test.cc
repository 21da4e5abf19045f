// Measuring and comparing with the built program, on a small stand-in for a compiled model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include <run_model/npz.h>
#include "tests/run_model/picture_artifact.h"
#include "tests/run_model/spawn.h"

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::Each;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Not;
using Strings = std::vector<std::string>;

class MeasuredProgramTest : public ::testing::Test {
 protected:
  ProgramResult run(const Strings& args) const { return spawn(RUN_MODEL_PROGRAM, args); }

  // Runs on inputs of ones.
  ProgramResult filled(const Strings& flags) const {
    Strings args{"net", artifact_.folder().path().string(), "--fill-mode=ones"};
    args.insert(args.end(), flags.begin(), flags.end());
    return run(args);
  }

  json measured(const Strings& flags) const {
    Strings all{"--json"};
    all.insert(all.end(), flags.begin(), flags.end());
    const ProgramResult result = filled(all);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json::parse(result.out);
  }

  std::string path(const std::string& name) const { return artifact_.path(name); }

  // A report of 20 samples around `middle` milliseconds.
  std::string report(const std::string& name, double middle) const {
    json report = measured({"--repeat=20"});
    json& samples = report["timing"]["repeated"]["samples"];
    for (std::size_t i = 0; i < samples.size(); ++i) {
      samples[i] = middle + 0.001 * static_cast<double>(i * 7 % 20);
    }
    artifact_.folder().write(name, report.dump());
    return path(name);
  }

  PictureArtifact artifact_;
};

TEST_F(MeasuredProgramTest, NothingIsRepeatedUnlessAsked) {
  const json report = measured({});
  EXPECT_EQ(report["timing"].size(), 2U);
  EXPECT_GE(report["timing"]["load"], 0.0);
  EXPECT_GE(report["timing"]["run"], 0.0);
  EXPECT_FALSE(report.contains("fingerprints"));
  EXPECT_THAT(filled({}).out, Not(HasSubstr("Repeated runs")));
}

TEST_F(MeasuredProgramTest, InstancesRunAtOnce) {
  const json report = measured({"--instances=3", "--repeat=20", "--warmup=1"});
  const json& repeated = report["timing"]["repeated"];
  EXPECT_EQ(repeated["instances"], 3);
  EXPECT_GE(repeated["samples"].size(), 20u);
  EXPECT_EQ(repeated["count"], repeated["samples"].size());
  EXPECT_NEAR(repeated["runs_per_second"].get<double>(),
              1000 * repeated["count"].get<double>() / repeated["measured"].get<double>(), 1e-6);
  const ProgramResult text = filled({"--instances=2", "--repeat=10"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr(" by 2 instances at once after "));
  EXPECT_THAT(text.out, HasSubstr("  Throughput: "));
  EXPECT_THAT(text.out, HasSubstr("shared by 2 instances"));
}

TEST_F(MeasuredProgramTest, AnArtifactAloneIsMeasuredOnRandomValues) {
  const ProgramResult result =
      run({artifact_.folder().path().string() + "/net_tvm.so", "--repeat=5", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json report = json::parse(result.out);
  EXPECT_EQ(report["timing"]["repeated"]["count"], 5);
  EXPECT_EQ(report["timing"]["repeated"]["instances"], 1);
  EXPECT_LT(report["outputs"][0]["range"]["min"], report["outputs"][0]["range"]["max"]);
}

TEST_F(MeasuredProgramTest, ReportsStatisticsAsJson) {
  const json report = measured({"--repeat=20", "--number=3", "--warmup=4"});
  const json& repeated = report["timing"]["repeated"];
  EXPECT_EQ(repeated["count"], 20);
  EXPECT_EQ(repeated["number"], 3);
  EXPECT_EQ(repeated["warm_up_runs"], 4);
  EXPECT_EQ(repeated["stopped_by"], "count");
  EXPECT_EQ(repeated["cold_cache_bytes"], 0);
  EXPECT_TRUE(repeated["pacing"].is_null());
  const std::vector<double> samples = repeated["samples"];
  ASSERT_EQ(samples.size(), 20U);
  EXPECT_THAT(samples, Each(Ge(0.0)));
  EXPECT_NEAR(*std::min_element(samples.begin(), samples.end()), repeated["min"], 1e-6);
  EXPECT_NEAR(*std::max_element(samples.begin(), samples.end()), repeated["max"], 1e-6);
  double last = repeated["min"];
  for (const char* name : {"median", "p90", "p95", "p99", "max"}) {
    EXPECT_GE(repeated[name], last) << name;
    last = repeated[name];
  }
  EXPECT_LE(repeated["median_interval"]["low"], repeated["median"]);
  EXPECT_GE(repeated["median_interval"]["high"], repeated["median"]);
  EXPECT_EQ(report["fingerprints"]["inputs"].get<std::string>().size(), 16U);
  EXPECT_EQ(report["threads"], report["thread_plan"]["threads"]);
  EXPECT_TRUE(report["machine"].is_object());
}

TEST_F(MeasuredProgramTest, ReportsStatisticsAsText) {
  const ProgramResult result = filled({"--print-time", "--repeat", "100"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr(", first run "));
  EXPECT_THAT(result.out,
              HasSubstr("Repeated runs: 100 samples after 3 warm-up runs, in milliseconds\n"));
  EXPECT_THAT(result.out, HasSubstr("95 % interval of the median: "));
  EXPECT_THAT(result.out, HasSubstr("outputs are those of the first run, bit by bit"));
}

TEST_F(MeasuredProgramTest, PictureTimesAreApart) {
  const ProgramResult result = run({"net", artifact_.folder().path().string(), path("red.ppm"),
                                    path("labels.txt"), "--no-normalize", "--repeat=10", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json report = json::parse(result.out);
  const json& timing = report["timing"];
  EXPECT_GT(timing["decode"], 0.0);
  EXPECT_GE(timing["preprocess"], timing["decode"]);
  EXPECT_EQ(timing["repeated"]["count"], 10);
  EXPECT_EQ(report["top"].size(), 3U);
}

TEST_F(MeasuredProgramTest, PacesAndCountsMissedStarts) {
  const json report = measured({"--fps=200", "--repeat=5"});
  const json& pacing = report["timing"]["repeated"]["pacing"];
  EXPECT_EQ(pacing["fps"], 200.0);
  EXPECT_EQ(pacing["latency"]["count"], 5);
  EXPECT_GE(report["timing"]["repeated"]["measured"], 20.0);
  EXPECT_THAT(filled({"--fps=200", "--repeat=5"}).out, HasSubstr("Paced: 200 starts a second, "));
}

TEST_F(MeasuredProgramTest, WritesEverySample) {
  const json report = measured({"--repeat=12", "--times", path("times.txt")});
  std::ifstream file(path("times.txt"));
  std::vector<double> times;
  for (double time = 0; file >> time;) times.push_back(time);
  EXPECT_EQ(times, report["timing"]["repeated"]["samples"].get<std::vector<double>>());
}

TEST_F(MeasuredProgramTest, FillsInputsAndSavesThem) {
  const std::string inputs = path("in.npz");
  EXPECT_EQ(filled({"--save-inputs", inputs, "--save-outputs", path("out.npz")}).exit_code, 0);
  EXPECT_THAT(read_npz(inputs).at(0).tensor.elements<float>(), Each(1.0F));
  EXPECT_EQ(read_npz(inputs).at(0).name, "data");
  EXPECT_THAT(read_npz(path("out.npz")).at(0).tensor.elements<float>(), Each(16.0F));

  Strings random{"net", artifact_.folder().path().string(), "--fill-mode=random"};
  random.insert(random.end(), {"--seed=3", "--save-inputs", inputs, "-o", path("a.npz")});
  EXPECT_EQ(run(random).exit_code, 0);
  const ProgramResult again = run({"net", artifact_.folder().path().string(), "--inputs", inputs,
                                   "--repeat=10", "-o", path("b.npz")});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(run({"--compare", path("a.npz"), path("b.npz"), "--atol=0", "--rtol=0"}).exit_code, 0);
}

TEST_F(MeasuredProgramTest, AModelThatDoesNotRepeatItsOutputsIsAnError) {
  artifact_.call("fused_counting");
  EXPECT_EQ(filled({}).exit_code, 0);
  const ProgramResult result = filled({"--repeat=5"});
  EXPECT_EQ(result.exit_code, 8);
  EXPECT_THAT(result.err, HasSubstr("output_0 after repeated runs is not what the first run"));
  EXPECT_EQ(result.out, "");
}

TEST_F(MeasuredProgramTest, NotANumberInALaterRunIsAnError) {
  artifact_.call("fused_late_not_a_number");
  const ProgramResult result = filled({"--repeat=5"});
  EXPECT_EQ(result.exit_code, 8);
  EXPECT_THAT(result.err, HasSubstr("after repeated runs, the model's output_0 holds NaN"));
}

TEST_F(MeasuredProgramTest, AModelThatChangesItsInputIsAnError) {
  artifact_.call("fused_writes_input");
  const ProgramResult result = filled({"--print-time", "--repeat=5"});
  EXPECT_EQ(result.exit_code, 8);
  EXPECT_THAT(result.err, HasSubstr("changed its own input 'data'"));
}

TEST_F(MeasuredProgramTest, ComparesTimes) {
  const std::string slow = report("slow.json", 2.0), fast = report("fast.json", 1.0);
  const ProgramResult slower = run({"--compare", fast, slow});
  EXPECT_EQ(slower.exit_code, 9);
  EXPECT_THAT(slower.out, HasSubstr("Verdict: slower: the second takes 9"));
  EXPECT_THAT(slower.out, Not(HasSubstr("Not the same")));
  const ProgramResult faster = run({"--compare", slow, fast, "--json"});
  EXPECT_EQ(faster.exit_code, 0);
  const json comparison = json::parse(faster.out);
  EXPECT_EQ(comparison["kind"], "times");
  EXPECT_EQ(comparison["verdict"], "faster");
  EXPECT_NEAR(comparison["ratio"]["estimate"], 0.5, 0.01);
  EXPECT_EQ(comparison["differences"], json::array());
  EXPECT_EQ(run({"--compare", slow, slow}).exit_code, 0);
}

TEST_F(MeasuredProgramTest, ComparesArrays) {
  ASSERT_EQ(filled({"-o", path("ones.npz")}).exit_code, 0);
  ASSERT_EQ(
      run({"net", artifact_.folder().path().string(), "--fill-mode=zeros", "-o", path("zeros.npz")})
          .exit_code,
      0);
  const ProgramResult different = run({"--compare", path("zeros.npz"), path("ones.npz"), "--json"});
  EXPECT_EQ(different.exit_code, 9);
  const json comparison = json::parse(different.out);
  EXPECT_EQ(comparison["kind"], "arrays");
  EXPECT_EQ(comparison["verdict"], "different");
  EXPECT_EQ(comparison["arrays"][0]["max_absolute"], 16.0);
  EXPECT_EQ(run({"--compare", path("zeros.npz"), path("ones.npz"), "--atol=16"}).exit_code, 0);
}

TEST_F(MeasuredProgramTest, RefusesWhatCannotBeCompared) {
  const std::string times = report("times.json", 1.0);
  ASSERT_EQ(filled({"-o", path("out.npz")}).exit_code, 0);
  EXPECT_EQ(run({"--compare", times, path("out.npz")}).exit_code, 6);
  EXPECT_EQ(run({"--compare", times, path("red.ppm")}).exit_code, 4);
  EXPECT_EQ(run({"--compare", times, path("missing.json")}).exit_code, 3);
  EXPECT_EQ(run({"--compare", times}).exit_code, 2);
}

}  // namespace
}  // namespace run_model
