// The built check_zoo, run as a user runs it, on a small stand-in for a compiled network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/has_elements.h"
#include "tests/run_model/check_zoo/fixture.h"
#include "tests/run_model/picture_artifact.h"

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Strings = std::vector<std::string>;

class CheckZooTest : public ::testing::Test {
 protected:
  Strings failed_rules(const json& result) const {
    Strings rules;
    for (const json& failure : result["failures"]) rules.push_back(failure["rule"]);
    return rules;
  }

  std::string message(const json& result, std::size_t i = 0) const {
    return result["failures"].at(i)["message"];
  }

  SmallZoo zoo_;
};

TEST_F(CheckZooTest, PassesARightArtifact) {
  const ProgramResult result = zoo_.check({});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr("net    native  triple  1/1 passed  1/1    1/1"));
  EXPECT_THAT(result.out, HasSubstr("1 case: 1 passed, 0 failed, 0 skipped, in "));
}

TEST_F(CheckZooTest, ReportsAsJson) {
  const ProgramResult result = zoo_.check({"--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json report = json::parse(result.out);
  EXPECT_EQ(report["schema_version"], 1);
  EXPECT_EQ(report["counts"], json({{"passed", 1}, {"failed", 0}, {"skipped", 0}}));
  const json& artifact = report["artifacts"].at(0);
  EXPECT_EQ(artifact["model"], "net");
  EXPECT_EQ(artifact["target"], "native");
  EXPECT_EQ(artifact["form"], "triple");
  EXPECT_EQ(artifact["emulated"], false);
  EXPECT_THAT(artifact["library"].get<std::string>(), ::testing::EndsWith("native/model.so"));
  EXPECT_EQ(artifact["library_xxh3_64"].get<std::string>().size(), 16U);
  const json& one = artifact["cases"].at(0);
  EXPECT_EQ(one["picture"], "red");
  EXPECT_EQ(one["status"], "passed");
  EXPECT_EQ(one["input_compared"], true);
  EXPECT_EQ(one["scores"]["kind"], "logits");
  EXPECT_EQ(one["scores"]["top1_equal"], true);
  EXPECT_LT(one["scores"]["largest_error"].get<double>(), 1e-6);
  EXPECT_EQ(one["scores"]["expected_top"].at(1)["label"], "blue things");
}

TEST_F(CheckZooTest, AWrongReferenceFailsWithDetails) {
  zoo_.write_golden("red", zoo_.golden(), {2.0F, 0.1F, 0.21F});
  const ProgramResult result = zoo_.check({});
  EXPECT_EQ(result.exit_code, 8);
  EXPECT_THAT(result.out, HasSubstr("0/1 FAILED"));
  EXPECT_THAT(result.out, HasSubstr("\nFAILED net native triple red\n"));
  EXPECT_THAT(result.out, HasSubstr("tolerance: 1 of 3 scores are beyond the tolerance, the worst "
                                    "at 2: 0.2, expected 0.21 within 0.0001"));
  EXPECT_THAT(result.out, HasSubstr("  2  2 blue things: 0.21  2 blue things: 0.2\n"));
  EXPECT_THAT(result.out, HasSubstr("largest error 0.01 at 2"));
}

TEST_F(CheckZooTest, TheCommandThatIsShownRepeatsTheCase) {
  zoo_.write_golden("other", zoo_.golden());
  zoo_.write_golden("red", zoo_.golden(), {2.0F, 0.1F, 0.21F});
  const ProgramResult all = zoo_.check({});
  EXPECT_THAT(all.out, HasSubstr("2 cases: 1 passed, 1 failed"));
  const std::string mark = "  repeat: ";
  const std::size_t start = all.out.find(mark);
  ASSERT_NE(start, std::string::npos);
  const std::string command =
      all.out.substr(start + mark.size(), all.out.find('\n', start) - start - mark.size());
  const ProgramResult again = spawn("/bin/sh", {"-c", command});
  EXPECT_EQ(again.exit_code, 8) << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("1 case: 0 passed, 1 failed"),
                               HasSubstr("FAILED net native triple red\n")));
}

TEST_F(CheckZooTest, AnotherBestClassFails) {
  json golden = zoo_.golden();
  std::swap(golden["top"][0], golden["top"][1]);
  zoo_.write_golden("red", golden, {2.0F, 0.1F, 2.1F});
  const json result = zoo_.check_one({}, 8);
  EXPECT_TRUE(has_elements(failed_rules(result), {"top-1", "order", "tolerance"}));
  EXPECT_EQ(result["scores"]["top1_equal"], false);
  EXPECT_EQ(result["scores"]["top5_equal"], true);
}

TEST_F(CheckZooTest, TheInputMustBeEqualBitForBit) {
  json golden = zoo_.golden();
  golden["input"]["sha256"] = std::string(64, 'f');
  zoo_.write_golden("red", golden);
  const json result = zoo_.check_one({}, 8);
  EXPECT_TRUE(has_elements(failed_rules(result), {"input"}));
  EXPECT_THAT(message(result), HasSubstr("expected ffffffffffff…"));
  EXPECT_EQ(result["input_compared"], true);
}

TEST_F(CheckZooTest, ThePictureMustBeTheReferences) {
  json golden = zoo_.golden();
  golden["picture"]["sha256"] = std::string(64, 'f');
  zoo_.write_golden("red", golden);
  EXPECT_TRUE(has_elements(failed_rules(zoo_.check_one({}, 8)), {"picture"}));
}

TEST_F(CheckZooTest, TheArtifactMustBeOfTheReferencesNetwork) {
  json metadata{{"schema_version", 1}, {"source", {{"onnx_sha256", std::string(64, 'a')}}}};
  zoo_.write_metadata(metadata);
  EXPECT_EQ(zoo_.check_one({}, 0)["status"], "passed");

  metadata["source"]["onnx_sha256"] = std::string(64, 'b');
  zoo_.write_metadata(metadata);
  const json other = zoo_.check_one({}, 8);
  EXPECT_TRUE(has_elements(failed_rules(other), {"artifact"}));
  EXPECT_THAT(message(other), AllOf(HasSubstr("compiled from the file bbbbbbbbbbbb…"),
                                    HasSubstr("scripts/make_golden")));
}

TEST_F(CheckZooTest, ThePreprocessingMustBeTheReferences) {
  json metadata{{"schema_version", 1}, {"preprocessing", zoo_.golden()["preprocessing"]}};
  zoo_.write_metadata(metadata);
  EXPECT_EQ(zoo_.check_one({}, 0)["status"], "passed");
  metadata["preprocessing"]["color_order"] = "BGR";
  zoo_.write_metadata(metadata);
  const json other = zoo_.check_one({}, 8);
  EXPECT_TRUE(has_elements(failed_rules(other), {"artifact"}));
  EXPECT_THAT(message(other), HasSubstr("describes another preprocessing"));
}

TEST_F(CheckZooTest, ACaseOfAnotherModelFails) {
  json golden = zoo_.golden();
  golden["model"] = "other";
  zoo_.write_golden("red", golden);
  EXPECT_THAT(message(zoo_.check_one({}, 8)), HasSubstr("is a case of the model 'other'"));
}

TEST_F(CheckZooTest, AnotherInputOrOutputFails) {
  json golden = zoo_.golden();
  golden["input"]["shape"] = {1, 3, 8, 8};
  zoo_.write_golden("red", golden);
  EXPECT_THAT(message(zoo_.check_one({}, 8)),
              HasSubstr("is float32 [1, 3, 4, 4], and the golden case has float32 [1, 3, 8, 8]"));
}

TEST_F(CheckZooTest, ADamagedCaseFails) {
  zoo_.folder().write("golden/net/red.json", "{");
  EXPECT_THAT(message(zoo_.check_one({}, 8)), HasSubstr("red.json' is no valid JSON"));
}

TEST_F(CheckZooTest, NanFails) {
  zoo_.call("fused_not_a_number");
  EXPECT_TRUE(has_elements(failed_rules(zoo_.check_one({}, 8)), {"finite"}));
}

TEST_F(CheckZooTest, ACrashIsAFailureThatNamesTheSignal) {
  zoo_.call("fused_crash");
  zoo_.write_golden("second", zoo_.golden());
  const ProgramResult result = zoo_.check({});
  EXPECT_EQ(result.exit_code, 8) << result.err;
  EXPECT_THAT(result.out, HasSubstr("FAILED net native triple red\n"));
  EXPECT_THAT(result.out, HasSubstr("crash: the process was ended by signal 11 (Segmentation "
                                    "fault)"));
  EXPECT_THAT(result.out, HasSubstr("not-run: not reached: red: the process was ended by signal"));
  EXPECT_THAT(result.out, HasSubstr("2 cases: 0 passed, 2 failed"));
}

TEST_F(CheckZooTest, WhatTakesTooLongIsStopped) {
  zoo_.call("fused_forever");
  const json result = zoo_.check_one({"--timeout=0.3"}, 8);
  EXPECT_TRUE(has_elements(failed_rules(result), {"timeout"}));
  EXPECT_THAT(message(result), HasSubstr("took more than 0.3 s and was stopped"));
}

TEST_F(CheckZooTest, ATimeoutBeyondAllClocksIsNone) {
  const ProgramResult result = zoo_.check({"--timeout=1e300"});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
}

TEST_F(CheckZooTest, AnArtifactThatCannotBeLoadedFails) {
  zoo_.call("no_such_function");
  const json result = zoo_.check_one({}, 8);
  EXPECT_TRUE(has_elements(failed_rules(result), {"load"}));
  EXPECT_THAT(message(result), HasSubstr("'no_such_function'"));
}

TEST_F(CheckZooTest, WhatIsMissingIsSkippedByName) {
  zoo_.write_golden("gone", [&] {
    json golden = zoo_.golden();
    golden["picture"]["file"] = "gone.png";
    return golden;
  }());
  const ProgramResult result = zoo_.check({"--forms=triple,tar"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("skipped net native triple: gone: the picture '"));
  EXPECT_THAT(result.out, HasSubstr("skipped net native tar (2 pictures): '"));
  EXPECT_THAT(result.out, HasSubstr("4 cases: 1 passed, 0 failed, 3 skipped"));
}

TEST_F(CheckZooTest, NothingToCheckIsAnErrorUnlessAllowed) {
  const ProgramResult refused = zoo_.check({"--forms=tar"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, StartsWith("check_zoo: nothing was checked: net native tar: '"));
  EXPECT_EQ(refused.out, "");
  const ProgramResult allowed = zoo_.check({"--forms=tar", "--allow-skip"});
  EXPECT_EQ(allowed.exit_code, 77);
  EXPECT_THAT(allowed.err, StartsWith("check_zoo: nothing was checked: net native tar: '"));
  EXPECT_THAT(allowed.out, HasSubstr("0 passed, 0 failed, 1 skipped"));
}

TEST_F(CheckZooTest, OtherFormsAreFound) {
  const std::string so = TemporaryFolder::read(PICTURE_MODEL);
  const std::string graph = picture_graph("fused_channel_sums").dump();
  const std::string params = bias_params("bias", 3);
  for (const std::string start : {"flat/net_tvm", "mod/mod"}) {
    const std::string file = "zoo/net/native/forms/" + start;
    zoo_.folder().write(file + ".so", so);
    zoo_.folder().write(file + ".json", graph);
    zoo_.folder().write(file + ".params", params);
  }
  const ProgramResult result = zoo_.check({"--forms=flat,mod"});
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_THAT(result.out, HasSubstr("2 cases: 2 passed"));
}

TEST_F(CheckZooTest, ShardsShareTheWork) {
  const std::string graph = picture_graph("fused_channel_sums").dump();
  for (const char* file : {"model.so", "model.json", "model.params"}) {
    zoo_.folder().write("zoo/net/c/" + std::string(file),
                        TemporaryFolder::read(zoo_.path("zoo/net/native/" + std::string(file))));
  }
  EXPECT_THAT(zoo_.check({}).out, HasSubstr("2 cases: 2 passed"));
  EXPECT_THAT(zoo_.check({"--shard=1/2"}).out, AllOf(HasSubstr("native"), Not(HasSubstr(" c "))));
  EXPECT_THAT(zoo_.check({"--shard=2/2"}).out, HasSubstr("net    c "));
  EXPECT_EQ(zoo_.check({"--shard=3/3"}).exit_code, 3);
}

TEST_F(CheckZooTest, WrongUsage) {
  for (const Strings& flags :
       {Strings{"--shard=3/2"}, Strings{"--forms=zip"}, Strings{"--target=vax"},
        Strings{"--models=none"}, Strings{"--pictures=none"}, Strings{"--timeout=0"},
        Strings{"--jobs=-1"}, Strings{"--models=../net"}, Strings{"what"}, Strings{"--nope"}}) {
    const ProgramResult result = zoo_.check(flags);
    EXPECT_EQ(result.exit_code, 2) << flags[0] << ": " << result.err;
    EXPECT_THAT(result.err, StartsWith("check_zoo: "));
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(CheckZooTest, AMalformedTableOfTolerancesIsToldOnce) {
  zoo_.folder().write("zoo/tolerances.json", "{}");
  const ProgramResult result = zoo_.check({"--json"});
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(json::parse(result.out)["error"]["message"].get<std::string>(),
              HasSubstr("tolerances.json"));
}

TEST_F(CheckZooTest, HelpNamesEveryExitCode) {
  const ProgramResult help = zoo_.check({"--help"});
  EXPECT_EQ(help.exit_code, 0);
  for (const char* line : {"\n  0  ", "\n  2  wrong usage", "\n  8  some cases have failed",
                           "\n  77 nothing could be checked"}) {
    EXPECT_THAT(help.out, HasSubstr(line));
  }
  EXPECT_THAT(zoo_.check({"--version"}).out, StartsWith("check_zoo "));
}

TEST_F(CheckZooTest, LocateSaysWhatItLacks) {
  zoo_.write_golden("red", zoo_.golden(), {2.0F, 0.1F, 0.21F});
  const ProgramResult result =
      zoo_.check({"--locate", "--intermediates=" + zoo_.path("intermediates")});
  EXPECT_EQ(result.exit_code, 8);
  EXPECT_THAT(result.out, HasSubstr("intermediates/net/red.npz' is not there: scripts/make_golden "
                                    "--zoo net --intermediates --pictures "));
}

// Programs for other machines run under their emulator; here a shell script stands in for one.
class EmulatedTest : public CheckZooTest {
 protected:
  EmulatedTest() {
    zoo_.folder().write("targets.json", json{{"schema_version", 1},
                                             {"targets",
                                              {{{"name", "native"},
                                                {"title", "Another machine"},
                                                {"machine", "vax"},
                                                {"tvm", "llvm"},
                                                {"preset", "vax"},
                                                {"emulator", {zoo_.path("emulator"), "-x"}},
                                                {"features", json::array()}}}}}
                                            .dump());
    std::filesystem::create_directories(zoo_.folder() / "programs/vax/bin");
    std::filesystem::create_symlink(CHECK_ZOO_PROGRAM,
                                    zoo_.folder() / "programs/vax/bin/check_zoo");
  }

  void emulate(const std::string& script) const {
    const auto file = zoo_.folder().write("emulator", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }

  json check_one(int exit_code) const {
    return zoo_.check_one({"--targets=" + zoo_.path("targets.json"),
                           "--programs=" + zoo_.path("programs"), "--allow-skip"},
                          exit_code);
  }
};

TEST_F(EmulatedTest, TheEmulatorRunsTheOtherProgram) {
  emulate("shift; exec \"$@\"");
  EXPECT_EQ(check_one(0)["status"], "passed");
}

TEST_F(EmulatedTest, ItsSignalIsNamed) {
  emulate("kill -BUS $$");
  EXPECT_THAT(message(check_one(8)), HasSubstr("was ended by signal 7 (Bus error)"));
}

TEST_F(EmulatedTest, WhatItSaysIsShown) {
  emulate("echo 'cannot open the library' >&2; exit 3");
  EXPECT_THAT(message(check_one(8)),
              AllOf(HasSubstr("exited with code 3"),
                    HasSubstr("after it had said 'cannot open the library")));
}

TEST_F(EmulatedTest, NonsenseIsNoResult) {
  emulate("echo hello");
  EXPECT_THAT(message(check_one(8)), HasSubstr("gave no valid result"));
  emulate("echo '{\"event\": \"end\"}'");
  EXPECT_THAT(message(check_one(8)), HasSubstr("the process gave no result"));
  emulate("true");
  EXPECT_THAT(message(check_one(8)), HasSubstr("the process ended before it was done"));
}

TEST_F(EmulatedTest, WithoutEmulatorOrProgramItIsSkipped) {
  EXPECT_THAT(check_one(77)["skipped_because"].get<std::string>(), HasSubstr("is not installed"));
  emulate("true");
  std::filesystem::remove(zoo_.folder() / "programs/vax/bin/check_zoo");
  EXPECT_THAT(check_one(77)["skipped_because"].get<std::string>(),
              HasSubstr("is not built (cmake --preset vax"));
}

}  // namespace
}  // namespace run_model
