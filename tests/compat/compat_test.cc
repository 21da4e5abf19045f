// Artifacts of TVM releases from 0.7 to 0.18, in every form that each writes, against what the
// release's own runtime answered.
#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include <run_model/package.h>
#include <run_model/tensor.h>
#include "tests/compat/compat_case.h"
#include "tests/run_model/spawn.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;
using ::testing::IsSupersetOf;

// The forms are the same for every network; all of them are made of this one.
constexpr const char* kAllFormsCase = "cnn";

std::string form_of(const Tensor& tensor) {
  return dtype_name(tensor.dtype()) + " " + shape_name(tensor.shape());
}

// Equal type and shape, and no element further from the expected one than `tolerance`; with 0 the
// same bits.
testing::AssertionResult matches(const Tensor& actual, const Tensor& expected, double tolerance) {
  if (form_of(actual) != form_of(expected)) {
    return testing::AssertionFailure() << form_of(actual) << " instead of " << form_of(expected);
  }
  if (std::memcmp(actual.data(), expected.data(), expected.nbytes()) == 0) {
    return testing::AssertionSuccess();
  }
  const std::vector<double> a = to_doubles(actual);
  const std::vector<double> b = to_doubles(expected);
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    // Written so that a NaN counts as a difference.
    if (const double difference = std::abs(a[i] - b[i]); !(difference <= largest)) {
      largest = difference;
      if (std::isnan(difference)) break;
    }
  }
  if (tolerance > 0 && largest <= tolerance) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << form_of(expected) << " differs by up to " << largest << ", allowed is " << tolerance;
}

class Release : public testing::TestWithParam<CompatCase> {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_for(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }

  void expect_answers(const ModelFiles& files, const UnpackedCase& unpacked) {
    for (int threads : {1, 2}) {
      SCOPED_TRACE(testing::Message() << threads << " threads");
      ThreadPoolOptions options;
      options.threads = threads;
      GraphExecutor model(files, {std::make_shared<ThreadPool>(options)});
      ASSERT_EQ(model.inputs().size(), unpacked.inputs.size());
      for (const NamedTensor& input : unpacked.inputs) model.set_input(input.name, input.tensor);
      model.run();
      ASSERT_EQ(model.outputs().size(), unpacked.expected.size());
      for (std::size_t i = 0; i < unpacked.expected.size(); ++i) {
        EXPECT_TRUE(
            matches(model.output(i), unpacked.expected[i].tensor, GetParam().tolerances.at(i)))
            << "output " << i;
      }
    }
  }

  TemporaryFolder folder_;
};

TEST_P(Release, AnswersAsItsOwnRuntime) {
  const UnpackedCase unpacked(GetParam(), folder_.path());
  PackageRequest request;
  request.artifacts = unpacked.artifact;
  const Package package = open_package(request);
  expect_answers(package.files, unpacked);
}

class Program : public Release {};

TEST_P(Program, AnswersAsTheReleasesOwnRuntime) {
  const UnpackedCase unpacked(GetParam(), folder_.path());
  const fs::path outputs = folder_ / "outputs.npz";
  const ProgramResult result = spawn(
      RUN_MODEL_PROGRAM,
      {GetParam().name, unpacked.artifact, "--inputs", unpacked.inputs_file, "--outputs", outputs});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<NamedTensor> answers = read_npz(outputs);
  ASSERT_EQ(answers.size(), unpacked.expected.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i].name, unpacked.expected[i].name);
    EXPECT_TRUE(
        matches(answers[i].tensor, unpacked.expected[i].tensor, GetParam().tolerances.at(i)));
  }
}

// The names that people give the three files.
class Naming : public Release {};

TEST_P(Naming, FlatFilesAreFound) {
  const UnpackedCase unpacked(GetParam(), folder_.path());
  const fs::path flat = folder_ / "flat";
  fs::create_directory(flat);
  for (const char* suffix : {".so", ".json", ".params"}) {
    fs::rename(unpacked.artifact / ("model" + std::string(suffix)),
               flat / (GetParam().name + "_tvm" + suffix));
  }
  PackageRequest request;
  request.model = GetParam().name;
  request.artifacts = flat;
  const Package package = open_package(request);
  expect_answers(package.files, unpacked);
}

TEST_P(Naming, FilesCalledModAreFound) {
  const UnpackedCase unpacked(GetParam(), folder_.path());
  for (const char* suffix : {".so", ".json", ".params"}) {
    fs::rename(unpacked.artifact / ("model" + std::string(suffix)),
               unpacked.artifact / ("mod" + std::string(suffix)));
  }
  PackageRequest request;
  request.artifacts = unpacked.artifact;
  const Package package = open_package(request);
  expect_answers(package.files, unpacked);
}

// What a Model Library Format archive holds is for a linker.
class LibraryFormat : public Release {};

TEST_P(LibraryFormat, IsRefusedUnlinkedAndAnswersLinked) {
  const UnpackedCase unpacked(GetParam(), folder_.path());
  PackageRequest request;
  request.artifacts = unpacked.artifact;
  EXPECT_TRUE(
      throws_error([&] { open_package(request); }, ErrorKind::kIncompatible, "scripts/link_mlf"));

  const fs::path linked = folder_ / "linked";
  const ProgramResult result =
      spawn(RUN_MODEL_SOURCE_DIR "/scripts/link_mlf", {unpacked.artifact, "--out", linked});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  request.artifacts = linked;
  const Package package = open_package(request);
  expect_answers(package.files, unpacked);
}

// What the tests above are instantiated over is read from a file: an empty one must not pass.
TEST(Manifest, HoldsEveryReleaseFormAndType) {
  std::set<std::string> releases;
  std::set<std::string> forms;
  std::set<std::string> networks;
  std::set<std::string> prefixes;
  std::set<std::string> machines;
  for (const CompatCase& compat : read_manifest()) {
    releases.insert(compat.release);
    forms.insert(compat.form);
    networks.insert(compat.name);
    prefixes.insert(compat.function_prefix);
    machines.insert(compat.machine);
  }
  EXPECT_THAT(releases, testing::UnorderedElementsAre("0.7.0", "0.8.0", "0.10.0", "0.12.0",
                                                      "0.14.0", "0.18.0"));
  EXPECT_THAT(forms, testing::UnorderedElementsAre("triple", "single", "tar", "linked", "mlf"));
  EXPECT_THAT(networks, IsSupersetOf({"cnn", "int8", "float16", "several", "lstm"}));
  EXPECT_THAT(prefixes, testing::UnorderedElementsAre("fused_", "tvmgen_default_fused_"));
  EXPECT_THAT(machines, testing::UnorderedElementsAre("x86_64", "aarch64", "armv7l", "riscv64"));
  EXPECT_GE(cases_of_this_machine().size(), 5U);
}

std::string test_name(const testing::TestParamInfo<CompatCase>& info) {
  return compat_test_name(info.param);
}

auto cases_where(const std::function<bool(const CompatCase&)>& wanted) {
  std::vector<CompatCase> cases = cases_of_this_machine();
  std::erase_if(cases, std::not_fn(wanted));
  return testing::ValuesIn(cases);
}

bool loadable(const CompatCase& compat) { return compat.form != "mlf"; }

bool loadable_in_all_forms(const CompatCase& compat) {
  return loadable(compat) && compat.name == kAllFormsCase;
}

bool triple(const CompatCase& compat) {
  return compat.name == kAllFormsCase && compat.form == "triple";
}

INSTANTIATE_TEST_SUITE_P(Tvm, Release, cases_where(loadable), test_name);
INSTANTIATE_TEST_SUITE_P(Tvm, Naming, cases_where(triple), test_name);
INSTANTIATE_TEST_SUITE_P(Tvm, LibraryFormat, cases_where(std::not_fn(loadable)), test_name);
// The archives are for x86-64.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LibraryFormat);
INSTANTIATE_TEST_SUITE_P(Tvm, Program, cases_where(loadable_in_all_forms), test_name);

}  // namespace
}  // namespace run_model
