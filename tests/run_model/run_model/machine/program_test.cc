// The built program's flags for threads, memory and the machine.
#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/cpu/topology.h"
#include "tests/has_elements.h"
#include "tests/run_model/picture_artifact.h"
#include "tests/run_model/spawn.h"

namespace run_model {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Gt;
using testing::HasSubstr;
using testing::Not;
using Strings = std::vector<std::string>;

class MachineProgramTest : public testing::Test {
 protected:
  ProgramResult classify(const Strings& flags) const {
    Strings args{"net", artifact_.folder().path().string(), artifact_.path("red.ppm"),
                 artifact_.path("labels.txt"), "--normalize"};
    args.insert(args.end(), flags.begin(), flags.end());
    return spawn(RUN_MODEL_PROGRAM, args);
  }
  json classify_as_json(Strings flags) const {
    flags.push_back("--json");
    const ProgramResult result = classify(flags);
    EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
    return json::parse(result.out);
  }

  PictureArtifact artifact_;
};

TEST_F(MachineProgramTest, APlainReportHasThePlanAndTheMachineInBrief) {
  const json report = classify_as_json({"--threads=1"});
  const json& plan = report.at("thread_plan");
  EXPECT_EQ(plan.at("threads"), 1);
  EXPECT_THAT(plan.at("reason"), HasSubstr("--threads"));
  EXPECT_EQ(plan.at("spin_microseconds"), 100);
  const json& machine = report.at("machine");
  EXPECT_EQ(machine.at("allowed_cpus"), allowed_cpus().size());
  EXPECT_FALSE(machine.at("kernel").is_null());
  EXPECT_FALSE(machine.contains("caches"));
  EXPECT_FALSE(report.contains("memory"));
  EXPECT_FALSE(report.contains("sweep"));
}

TEST_F(MachineProgramTest, APlainTextSaysNothingOfThem) {
  EXPECT_THAT(classify({}).out, AllOf(Not(HasSubstr("Machine")), Not(HasSubstr("Threads:")),
                                      Not(HasSubstr("Memory"))));
}

TEST_F(MachineProgramTest, AMeasurementHasThemAsText) {
  EXPECT_THAT(classify({"--repeat=3", "--threads=1"}).out,
              AllOf(HasSubstr("\nThreads: 1 on CPU "), HasSubstr("\nMachine: ")));
}

TEST_F(MachineProgramTest, RunsOnTheChosenCpus) {
  const int last = allowed_cpus().back();
  const json plan = classify_as_json({"--cpus", std::to_string(last)}).at("thread_plan");
  EXPECT_EQ(plan.at("cpus"), json::array({last}));
  EXPECT_EQ(plan.at("restricted"), allowed_cpus().size() > 1);
}

TEST_F(MachineProgramTest, RefusesOtherCpusAndListsThoseThereAre) {
  const ProgramResult result = classify({"--cpus=60000"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("CPU 60000, but this process may use only " +
                                    cpu_list_text(allowed_cpus())));
}

TEST_F(MachineProgramTest, RefusesNonsense) {
  for (const auto& [flags, message] : std::vector<std::pair<Strings, std::string>>{
           {{"--cpus=1-"}, "'1-', expected numbers and ranges"},
           {{"--cpus="}, "expected numbers and ranges"},
           {{"--cluster=huge"}, "expected big, little, middle, prime or all"},
           {{"--cluster=big", "--cpus=0"}, "--cpus and --cluster both"},
           {{"--spin=-1"}, "--spin is -1, expected 0 to 1000000"},
           {{"--threads=1025"}, "expected 0 to 1024"},
           {{"--sweep=spin"}, "expected threads"},
           {{"--sweep=threads", "--profile"}, "--sweep and --profile do not go together"}}) {
    const ProgramResult result = classify(flags);
    EXPECT_EQ(result.exit_code, 2) << flags.front();
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(MachineProgramTest, AnyClusterRunsOnAnyMachine) {
  for (const char* cluster : {"big", "little", "middle", "prime", "all"}) {
    EXPECT_EQ(classify({"--cluster", cluster}).exit_code, 0) << cluster;
  }
}

TEST_F(MachineProgramTest, MemoryStageByStage) {
  const json memory = classify_as_json({"--print-memory"}).at("memory");
  Strings names;
  for (const json& stage : memory.at("stages")) {
    names.push_back(stage.at("stage"));
    EXPECT_THAT(stage.at("resident").get<std::size_t>(), Gt(std::size_t{1} << 16));
    EXPECT_LE(stage.at("resident"), memory.at("peak_resident"));
    if (stage.at("anonymous").is_null()) continue;
    EXPECT_EQ(stage.at("resident").get<std::size_t>(),
              stage.at("anonymous").get<std::size_t>() +
                  stage.at("file_backed").get<std::size_t>() +
                  stage.at("shared").get<std::size_t>());
  }
  EXPECT_TRUE(has_elements(names, {"start", "loaded", "parameters bound", "first run", "steady"}));
  // The bias: three float32, copied because nothing aligns it in the file.
  const json& own = memory.at("own");
  EXPECT_EQ(own.at("parameters_mapped").get<int>() + own.at("parameters_copied").get<int>(), 12);
  EXPECT_GE(own.at("activations"), (48 + 3) * 4);
  EXPECT_EQ(own.at("workspaces"), 0);
}

TEST_F(MachineProgramTest, MemoryAsText) {
  EXPECT_THAT(classify({"--print-memory"}).out,
              AllOf(HasSubstr("Memory, MiB "), HasSubstr("\n  start  "),
                    HasSubstr("\n  parameters bound "), HasSubstr("\n  steady "),
                    HasSubstr("\n  peak "), HasSubstr("\nHeld by the runtime, MiB: ")));
}

TEST_F(MachineProgramTest, SweepsAndRecommends) {
  const json report = classify_as_json({"--sweep=threads", "--repeat=10"});
  const json& sweep = report.at("sweep");
  const json& rows = sweep.at("rows");
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows.front().at("threads"), 1);
  EXPECT_EQ(rows.front().at("speed_up"), 1.0);
  for (const json& row : rows) {
    EXPECT_EQ(row.at("samples"), 10);
    EXPECT_LE(row.at("min"), row.at("median"));
    EXPECT_LE(row.at("median"), row.at("p95"));
    EXPECT_NEAR(row.at("efficiency").get<double>(),
                row.at("speed_up").get<double>() / row.at("threads").get<double>(), 1e-9);
  }
  const json& recommended = sweep.at("recommended");
  EXPECT_EQ(recommended.at("flags"), rows.at(recommended.at("row").get<std::size_t>()).at("flags"));
  EXPECT_FALSE(report.at("timing").contains("repeated"));
  EXPECT_TRUE(report.at("machine").contains("caches"));
}

TEST_F(MachineProgramTest, WhatASweepRecommendsCanBeRun) {
  const json sweep = classify_as_json({"--sweep=threads", "--repeat=5"}).at("sweep");
  for (const json& row : sweep.at("rows")) {
    const std::string flags = row.at("flags");
    Strings words;
    for (std::size_t start = 0; start < flags.size();) {
      const std::size_t end = std::min(flags.find(' ', start), flags.size());
      words.push_back(flags.substr(start, end - start));
      start = end + 1;
    }
    const json plan = classify_as_json(words).at("thread_plan");
    for (const char* key : {"threads", "cpus", "spin_microseconds"}) {
      EXPECT_EQ(plan.at(key), row.at(key)) << flags;
    }
  }
}

TEST_F(MachineProgramTest, SweepsWithTensorsToo) {
  const std::string folder = artifact_.folder().path().string();
  const ProgramResult filled =
      spawn(RUN_MODEL_PROGRAM, {"net", folder, "--fill-mode=ones", "--save-inputs",
                                artifact_.path("in.npz"), "--sweep=threads", "--repeat=5"});
  EXPECT_EQ(filled.exit_code, 0) << filled.err;
  EXPECT_THAT(filled.out, HasSubstr("\nRecommended: --threads "));
  const ProgramResult given =
      spawn(RUN_MODEL_PROGRAM,
            {"net", folder, "--inputs", artifact_.path("in.npz"), "--sweep=threads", "--repeat=5"});
  EXPECT_EQ(given.exit_code, 0) << given.err;
  EXPECT_THAT(given.out, HasSubstr("\nThread sweep, 5 rounds"));
}

TEST_F(MachineProgramTest, ASweepRefusesOutputsThatDiffer) {
  artifact_.call("fused_counting");
  const ProgramResult result = classify({"--sweep=threads", "--repeat=5"});
  EXPECT_EQ(result.exit_code, 8);
  EXPECT_THAT(result.err, HasSubstr("is not what --threads 1 gave"));
}

}  // namespace
}  // namespace run_model
