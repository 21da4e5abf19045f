// Whatever is wrong with what the program is given: one clear sentence and the documented exit
// code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <run_model/error.h>
#include <run_model/npy.h>
#include <run_model/npz.h>
#include "run_model/shared/manual.h"
#include "tests/run_model/picture_artifact.h"
#include "tests/run_model/spawn.h"

namespace run_model {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Strings = std::vector<std::string>;

class BadInputTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return artifact_.path(name); }

  void write(const std::string& name, const std::string& content) const {
    artifact_.folder().write(name, content);
  }

  Strings arguments() const {
    return {"net", artifact_.folder().path().string(), path("red.ppm"), path("labels.txt"),
            "--no-normalize"};
  }

  void expect_failure(const Strings& args, ErrorKind code, const std::string& message) const {
    const ProgramResult result = spawn(RUN_MODEL_PROGRAM, args);
    EXPECT_EQ(result.exit_code, exit_code(code)) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("run_model: "));
    EXPECT_THAT(result.err, HasSubstr(message));
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  }

  void expect_failure(ErrorKind code, const std::string& message) const {
    expect_failure(arguments(), code, message);
  }

  PictureArtifact artifact_;
};

TEST_F(BadInputTest, Usage) {
  const auto with = [&](const Strings& flags) {
    Strings args = arguments();
    args.insert(args.end(), flags.begin(), flags.end());
    return args;
  };
  expect_failure({}, ErrorKind::kUsage, "NAME is missing");
  expect_failure(with({"--mean", "104", "117"}), ErrorKind::kUsage, "but 2 were given");
  expect_failure(with({"--mean=1,2"}), ErrorKind::kUsage, "but 2 were given");
  expect_failure(with({"--nope"}), ErrorKind::kUsage, "there is no flag '--nope'");
  expect_failure(with({"--normalize"}), ErrorKind::kUsage, "contradict each other");
  expect_failure(with({"--topk", "x"}), ErrorKind::kUsage, "--topk is given 'x'");
  Strings nothing_says = arguments();
  nothing_says.pop_back();
  expect_failure(nothing_says, ErrorKind::kUsage, "nothing says how this model wants its pixels");
}

TEST_F(BadInputTest, MissingFiles) {
  Strings args = arguments();
  args[1] = path("nowhere");
  expect_failure(args, ErrorKind::kFile, "no artifact of 'net' was found");
  args = arguments();
  args[2] = path("nothing.png");
  expect_failure(args, ErrorKind::kFile, path("nothing.png"));
  args = arguments();
  args[3] = path("nothing.txt");
  expect_failure(args, ErrorKind::kFile, path("nothing.txt"));
  std::filesystem::remove(path("net_tvm.json"));
  expect_failure(ErrorKind::kFile, "net_tvm.json' is missing");
}

TEST_F(BadInputTest, EmptyFiles) {
  for (const char* name : {"net_tvm.so", "net_tvm.json", "net_tvm.params", "labels.txt"}) {
    const std::string content = TemporaryFolder::read(path(name));
    write(name, "");
    expect_failure(ErrorKind::kFormat, name);
    write(name, content);
  }
  write("red.ppm", "");
  expect_failure(ErrorKind::kImage, "red.ppm");
}

TEST_F(BadInputTest, SwappedFiles) {
  const Strings names{"net_tvm.so", "net_tvm.json", "net_tvm.params"};
  for (const std::string& wrong : names) {
    for (const std::string& content : names) {
      if (wrong == content) continue;
      const std::string original = TemporaryFolder::read(path(wrong));
      write(wrong, TemporaryFolder::read(path(content)));
      expect_failure(ErrorKind::kFormat, wrong + "' is ");
      expect_failure(ErrorKind::kFormat, "swapped");
      write(wrong, original);
    }
  }
}

TEST_F(BadInputTest, TruncatedFiles) {
  for (const char* name : {"net_tvm.so", "net_tvm.json", "net_tvm.params"}) {
    const std::string content = TemporaryFolder::read(path(name));
    for (const std::size_t length : {content.size() / 2, content.size() - 1}) {
      // The end of a library holds nothing that is needed to run it.
      if (std::string(name) == "net_tvm.so" && length == content.size() - 1) continue;
      write(name, content.substr(0, length));
      expect_failure(ErrorKind::kFormat, name);
    }
    write(name, content);
  }
}

TEST_F(BadInputTest, LibraryForAnotherMachine) {
  std::string library = TemporaryFolder::read(path("net_tvm.so"));
  library[18] = static_cast<char>(library[18] ^ 0x55);  // e_machine
  write("net_tvm.so", library);
  expect_failure(ErrorKind::kIncompatible, "net_tvm.so' is compiled for ");
}

TEST_F(BadInputTest, FunctionThatTheLibraryHasNot) {
  artifact_.call("fused_missing");
  expect_failure(ErrorKind::kMismatch, "'fused_missing'");
}

TEST_F(BadInputTest, ParametersOfAnotherModel) {
  write("net_tvm.params", bias_params("other", 3));
  expect_failure(ErrorKind::kMismatch, "'other'");
  write("net_tvm.params", bias_params("bias", 4));
  expect_failure(ErrorKind::kMismatch, "'bias'");
  std::filesystem::remove(path("net_tvm.params"));
  expect_failure(ErrorKind::kUsage, "several inputs: 'data', 'bias'");
}

TEST_F(BadInputTest, MetadataOfAnotherModel) {
  json metadata = PictureArtifact::metadata();
  metadata["inputs"][0]["shape"][3] = 5;
  artifact_.write_metadata(metadata);
  expect_failure(ErrorKind::kMismatch, "the metadata belongs to another artifact");
  metadata = PictureArtifact::metadata();
  metadata["outputs"][0]["dtype"] = "int8";
  artifact_.write_metadata(metadata);
  expect_failure(ErrorKind::kMismatch, "describes output 0 as int8 [1, 3]");
  metadata = PictureArtifact::metadata();
  metadata["schema_version"] = 2;
  artifact_.write_metadata(metadata);
  expect_failure(ErrorKind::kIncompatible, "schema_version 2");
}

TEST_F(BadInputTest, DamagedFilesByTheirChecksum) {
  json metadata = PictureArtifact::metadata();
  metadata["files"]["net_tvm.params"] = {
      {"bytes", std::filesystem::file_size(path("net_tvm.params"))},
      {"xxh3_64", "0123456789abcdef"}};
  metadata["files"]["net_tvm.so"] = {{"bytes", std::filesystem::file_size(path("net_tvm.so"))}};
  metadata["files"]["net_tvm.json"] = {{"bytes", std::filesystem::file_size(path("net_tvm.json"))}};
  artifact_.write_metadata(metadata);
  expect_failure(ErrorKind::kFormat,
                 "but '" + path("net_tvm.metadata.json") + "' lists 0123456789");
  Strings args = arguments();
  args.push_back("--no-verify");
  EXPECT_EQ(spawn(RUN_MODEL_PROGRAM, args).exit_code, 0);
}

TEST_F(BadInputTest, LabelsOfAnotherModel) {
  write("labels.txt", "one\ntwo\n");
  expect_failure(ErrorKind::kMismatch, "has 2 labels, but the model tells 3 classes apart");
}

TEST_F(BadInputTest, InputNameThatDoesNotExist) {
  Strings args = arguments();
  args.push_back("input0");
  expect_failure(args, ErrorKind::kMismatch, "'data'");
}

TEST_F(BadInputTest, Pictures) {
  write("red.ppm", "P6 60000 60000 255\n");
  expect_failure(ErrorKind::kImage, "red.ppm");
  write("red.ppm", "no picture");
  expect_failure(ErrorKind::kImage, "red.ppm");
  write("red.ppm", "P6 8 6 255\nabc");
  expect_failure(ErrorKind::kImage, "red.ppm");
}

TEST_F(BadInputTest, ModelsThatFail) {
  artifact_.call("fused_failure");
  expect_failure(ErrorKind::kModel, "the model does not like this picture");
  artifact_.call("fused_not_a_number");
  expect_failure(ErrorKind::kModel, "the model gave NaN for class 1");
  artifact_.call("fused_division_trap");
  expect_failure(ErrorKind::kModel, "divided a whole number by zero");
  artifact_.call("fused_unknown_instruction");
  expect_failure(ErrorKind::kIncompatible, "an instruction that this CPU does not know");
  artifact_.call("fused_shortened_file");
  expect_failure(ErrorKind::kFile, "a file became shorter while it was in use");
}

TEST_F(BadInputTest, Tensors) {
  const auto run_on = [&](const std::string& file) {
    return Strings{"net", artifact_.folder().path().string(), "--inputs", path(file)};
  };
  const Tensor wrong_shape = Tensor::empty({1, 3, 4, 5}, parse_dtype("float32"));
  write_npy(path("shape.npy"), wrong_shape);
  expect_failure(run_on("shape.npy"), ErrorKind::kMismatch,
                 "as float32 [1, 3, 4, 5], but the model takes float32 [1, 3, 4, 4]");
  write_npy(path("type.npy"), Tensor::empty({1, 3, 4, 4}, parse_dtype("int8")));
  expect_failure(run_on("type.npy"), ErrorKind::kMismatch, "as int8 [1, 3, 4, 4]");
  write_npz(path("none.npz"), {});
  expect_failure(run_on("none.npz"), ErrorKind::kMismatch, "lacks the model's input 'data'");
  const std::vector<NamedTensor> misnamed{{"dato", wrong_shape}};
  write_npz(path("name.npz"), misnamed);
  expect_failure(run_on("name.npz"), ErrorKind::kMismatch, "'data'");
  expect_failure(run_on("missing.npz"), ErrorKind::kFile, "missing.npz");
  expect_failure(run_on("red.ppm"), ErrorKind::kFormat, "red.ppm");
}

TEST_F(BadInputTest, FilesThatCannotBeWritten) {
  for (const char* flag : {"--dump-input", "--outputs"}) {
    Strings args = arguments();
    args.insert(args.end(), {flag, path("no/folder/x")});
    expect_failure(args, ErrorKind::kFile, "no/folder/x': No such file or directory");
  }
}

TEST_F(BadInputTest, ErrorsAsJson) {
  Strings args = arguments();
  args[2] = path("nothing.png");
  args.push_back("--json");
  const ProgramResult result = spawn(RUN_MODEL_PROGRAM, args);
  EXPECT_EQ(result.exit_code, 3);
  const json report = json::parse(result.out);
  EXPECT_EQ(report["schema_version"], 1);
  EXPECT_EQ(report["error"]["code"], 3);
  EXPECT_EQ(report["error"]["name"], "file missing, unreadable or unwritable");
  EXPECT_EQ("run_model: " + report["error"]["message"].get<std::string>() + "\n", result.err);
}

}  // namespace
}  // namespace run_model
