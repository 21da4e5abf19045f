// run_model on executables with several functions: one of them by name, or one after the other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/compat/compat_case.h"
#include "tests/run_model/spawn.h"
#include "tests/temporary_folder.h"

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::ElementsAreArray;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

class RelaxProgram : public testing::Test {
 protected:
  // The newest release's artifact of the network.
  void unpack(const std::string& network, const std::string& form = "bytecode") {
    for (const CompatCase& compat : relax_cases_of_this_machine()) {
      if (compat.name == network && compat.form == form) case_ = compat;
    }
    if (!case_) GTEST_SKIP() << "the corpus has no " << network << " for this machine";
    if (const std::string reason = missing_for(*case_); !reason.empty()) GTEST_SKIP() << reason;
    unpacked_.emplace(*case_, folder_.path());
  }

  ProgramResult run(std::vector<std::string> flags) const {
    flags.insert(flags.begin(), unpacked_->artifact.string());
    flags.insert(flags.end(), {"--inputs", unpacked_->inputs_file.string(), "--outputs",
                               (folder_ / "out.npz").string()});
    return spawn(RUN_MODEL_PROGRAM, flags);
  }

  // `calls`: the list of the file of --calls.
  ProgramResult run_calls(const std::string& calls,
                          const std::vector<std::string>& flags = {}) const {
    folder_.write("calls.json", R"({"schema_version": 1, "calls": [)" + calls + "]}");
    std::vector<std::string> all{"--calls", (folder_ / "calls.json").string()};
    all.insert(all.end(), flags.begin(), flags.end());
    return run(all);
  }

  std::vector<float> written(const std::string& name) const {
    for (const NamedTensor& each : read_npz(folder_ / "out.npz")) {
      if (each.name != name) continue;
      const auto values = each.tensor.elements<float>();
      return {values.begin(), values.end()};
    }
    ADD_FAILURE() << "no array " << name;
    return {};
  }

  std::vector<float> expected() const {
    const auto values = unpacked_->expected.at(0).tensor.elements<float>();
    return {values.begin(), values.end()};
  }

  TemporaryFolder folder_;
  std::optional<CompatCase> case_;
  std::optional<UnpackedCase> unpacked_;
};

TEST_F(RelaxProgram, CallsTheFunctionOfThatName) {
  ASSERT_NO_FATAL_FAILURE(unpack("functions_double"));
  if (IsSkipped()) return;
  const ProgramResult result = run({"--function", "double"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(written("output_0"), ElementsAreArray(expected()));
  const ProgramResult unknown = run({"--function", "halve"});
  EXPECT_EQ(unknown.exit_code, 6);
  EXPECT_THAT(unknown.err, HasSubstr("'halve'"));
  EXPECT_THAT(unknown.err, HasSubstr("'double'"));
}

// Code that is compiled as a whole looks its functions up when it runs.
TEST_F(RelaxProgram, RefusesWhatCodeLooksUpBeforeItRuns) {
  ASSERT_NO_FATAL_FAILURE(unpack("closure", "compiled"));
  if (IsSkipped()) return;
  std::filesystem::path library = unpacked_->artifact;
  if (std::filesystem::is_directory(library)) library /= "model.so";
  const std::vector<std::string> inspect{library.string(), "--inspect", "--json"};
  const json inspected = json::parse(spawn(RUN_MODEL_PROGRAM, inspect).out);
  EXPECT_EQ(inspected["runs_here"], true);
  ASSERT_EQ(inspected["unknown"].size(), 1U);
  EXPECT_THAT(inspected["unknown"][0].get<std::string>(), HasSubstr("machine code"));
  std::string bytes = folder_.read(library);
  const std::string known = "vm.builtin.null_value";
  const std::size_t at = bytes.find(std::string(1, '\0') + known + std::string(1, '\0'));
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at + 1, known.size(), "vm.builtin.rnn_state_");
  folder_.write("other/model.so", bytes);
  const std::string other = (folder_ / "other/model.so").string();
  const ProgramResult said = spawn(RUN_MODEL_PROGRAM, {other, "--inspect", "--json"});
  EXPECT_THAT(said.out, HasSubstr("'vm.builtin.rnn_state_'"));
  EXPECT_EQ(json::parse(said.out)["runs_here"], false);
  const ProgramResult result =
      spawn(RUN_MODEL_PROGRAM, {other, "--inputs", unpacked_->inputs_file.string(), "--outputs",
                                (folder_ / "out.npz").string()});
  EXPECT_EQ(result.exit_code, 5);
  EXPECT_THAT(result.err, HasSubstr("'vm.builtin.rnn_state_'"));
  EXPECT_THAT(result.err, HasSubstr("language models"));
  // Before the library is loaded, not by its first call.
  EXPECT_THAT(result.err, testing::Not(HasSubstr("function 'main' failed")));
}

TEST_F(RelaxProgram, HandsResultsFromCallToCall) {
  ASSERT_NO_FATAL_FAILURE(unpack("functions"));
  if (IsSkipped()) return;
  const ProgramResult result = run_calls(
      R"({"function": "double", "arguments": [{"input": "x"}], "result": "twice"},
         {"function": "main", "arguments": [{"result": "twice"}], "save": {"end": ""}})",
      {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // main(x) is 2 x², of x = 1, -2, 3, 0.5 twice as large.
  EXPECT_THAT(written("end"), ElementsAreArray({8.0F, 32.0F, 72.0F, 2.0F}));
  const json report = json::parse(result.out);
  ASSERT_EQ(report["calls"].size(), 2U);
  EXPECT_EQ(report["calls"][0]["result"], "twice");
  EXPECT_EQ(report["calls"][1]["value"], "float32 [4]");
  EXPECT_EQ(report["outputs"], json({"end"}));
}

TEST_F(RelaxProgram, GivesTheParametersThatLieBesideIt) {
  ASSERT_NO_FATAL_FAILURE(unpack("mlp_params"));
  if (IsSkipped()) return;
  const ProgramResult result = run_calls(
      R"({"function": "main", "arguments": [{"input": "x"}, {"parameters": "each"}],
          "save": {"y": ""}})");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto allowed = static_cast<float>(case_->tolerances.at(0));  // none where it was compiled
  EXPECT_THAT(written("y"), Pointwise(FloatNear(allowed), expected()));
}

TEST_F(RelaxProgram, RefusesCallsThatMakeNoSense) {
  ASSERT_NO_FATAL_FAILURE(unpack("functions"));
  if (IsSkipped()) return;
  struct {
    const char* call;
    const char* said;
  } const cases[] = {
      {R"("function": "halve", "arguments": [{"input": "x"}])", "halve"},
      {R"("function": "double")", "double"},
      {R"("function": "double", "arguments": [{"integer": 3}])", "double"},
      {R"("function": "double", "arguments": [{"input": "y"}])",
       "input 'y', which the file of --inputs does not have; run_model/README.md"},
      {R"("function": "double", "arguments": [{"result": "none"}])",
       "result 'none', which no call before has"},
      {R"("function": "double", "arguments": [{"parameters": "each"}])", "model_params.npz"},
      {R"("function": "double", "arguments": [{"number": 3}])", "no kind of argument"},
      {R"("function": "double", "argument": [{"input": "x"}])", "argument"},
      {R"("function": "double", "arguments": [{"input": "x"}], "save": {"y": "0"})", "item 0"},
  };
  for (const auto& each : cases) {
    const ProgramResult result = run_calls("{" + std::string(each.call) + "}");
    EXPECT_GT(result.exit_code, 0) << each.call;
    EXPECT_LT(result.exit_code, 64) << each.call << result.err;
    EXPECT_THAT(result.err, HasSubstr(each.said)) << each.call;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.npz")) << each.call;
  }
}

}  // namespace
}  // namespace run_model
