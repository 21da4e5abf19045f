// Executables of the Relax virtual machine that TVM 0.25 to 0.27 made, against what each release's
// own virtual machine answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include <run_model/debug_executor.h>
#include <run_model/package.h>
#include "tests/compat/compat_case.h"
#include "tests/temporary_folder.h"

namespace run_model {
namespace {

class RelaxRelease : public testing::TestWithParam<CompatCase> {
 protected:
  void SetUp() override {
    if (const std::string reason = missing_for(GetParam()); !reason.empty()) GTEST_SKIP() << reason;
  }

  void expect_answer(const Tensor& actual, const Tensor& expected, double tolerance) {
    ASSERT_EQ(tensor_form_name(actual.dtype(), actual.shape()),
              tensor_form_name(expected.dtype(), expected.shape()));
    if (expected.nbytes() == 0) return;
    if (std::memcmp(actual.data(), expected.data(), expected.nbytes()) == 0) return;
    const std::vector<double> a = to_doubles(actual);
    const std::vector<double> b = to_doubles(expected);
    // Written so that a NaN counts as a difference.
    for (std::size_t i = 0; i < a.size(); ++i) {
      ASSERT_TRUE(std::abs(a[i] - b[i]) <= tolerance) << i << ": " << a[i] << ", not " << b[i];
    }
  }

  TemporaryFolder folder_;
};

TEST_P(RelaxRelease, AnswersAsItsOwnVirtualMachine) {
  const UnpackedCase unpacked(GetParam(), folder_.path());
  PackageRequest request;
  request.artifacts = unpacked.artifact;
  const Package package = open_package(request);
  ThreadPoolOptions threads;
  threads.threads = 2;
  for (const bool plan_memory : {true, false}) {
    ExecutorOptions options;
    options.threads = std::make_shared<ThreadPool>(threads);
    options.plan_memory = plan_memory;
    options.function = GetParam().function;
    DebugExecutor model(package.files, options);
    ASSERT_EQ(model.inputs().size(), unpacked.inputs.size());
    // The second time, all memory has been used before.
    for (int run = 0; run < 2; ++run) {
      for (const NamedTensor& input : unpacked.inputs) model.set_input(input.name, input.tensor);
      model.run();
      ASSERT_EQ(model.outputs().size(), unpacked.expected.size());
      for (std::size_t i = 0; i < unpacked.expected.size(); ++i) {
        expect_answer(model.output(i), unpacked.expected[i].tensor, GetParam().tolerances.at(i));
      }
    }
  }
}

TEST(RelaxManifest, HoldsEveryReleaseFormAndMachine) {
  std::set<std::string> releases, forms, networks, machines;
  std::map<std::string, std::set<std::string>> of_latest;  // networks by machine
  for (const CompatCase& compat : read_relax_manifest()) {
    if (compat.release == "0.27.0.post1") of_latest[compat.machine].insert(compat.name);
    releases.insert(compat.release);
    forms.insert(compat.form);
    networks.insert(compat.name);
    machines.insert(compat.machine);
  }
  EXPECT_THAT(releases, testing::UnorderedElementsAre("0.25.0", "0.26.0", "0.27.0.post1"));
  EXPECT_THAT(forms, testing::IsSupersetOf({"bytecode", "compiled"}));
  EXPECT_THAT(networks, testing::IsSupersetOf({"cnn", "mlp_dynamic", "branch", "topk",
                                               "transformer_dynamic", "distinct", "four_bits"}));
  EXPECT_THAT(machines, testing::UnorderedElementsAre("x86_64", "aarch64", "armv7l", "riscv64"));
  for (const std::string& machine : machines) EXPECT_EQ(of_latest[machine], networks) << machine;
  EXPECT_GE(relax_cases_of_this_machine().size(), 5U);
}

std::string relax_test_name(const testing::TestParamInfo<CompatCase>& info) {
  return compat_test_name(info.param);
}

INSTANTIATE_TEST_SUITE_P(Tvm, RelaxRelease, testing::ValuesIn(relax_cases_of_this_machine()),
                         relax_test_name);

}  // namespace
}  // namespace run_model
