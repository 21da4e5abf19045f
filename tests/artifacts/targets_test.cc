#include "artifacts/targets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/artifacts/test_artifact.h"
#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using ::testing::IsSupersetOf;

std::string best_name(std::string_view machine, const CpuFeatures& cpu) {
  const auto best = best_target(built_in_targets(), machine, cpu);
  return best ? best->name : "";
}

// All features that the list's targets for that machine need, as if absent.
CpuFeatures weakest_cpu(const std::string& machine) {
  CpuFeatures cpu;
  for (const ListedTarget& target : built_in_targets()) {
    if (target.machine != machine) continue;
    for (const std::string& feature : target.features) cpu[feature] = false;
  }
  return cpu;
}

TEST(TargetListTest, IsBuiltIn) {
  const std::vector<ListedTarget>& targets = built_in_targets();
  const std::vector<ListedTarget> read =
      read_target_list(RUN_MODEL_SOURCE_DIR "/artifacts/targets.json");
  ASSERT_EQ(targets.size(), read.size());
  std::vector<std::string> names;
  for (const ListedTarget& target : targets) names.push_back(target.name);
  EXPECT_THAT(names, IsSupersetOf({"native", "x86_64_v3", "raspi4_aarch64", "pynq_z1", "c"}));
  const auto pi = std::find_if(read.begin(), read.end(),
                               [](const auto& t) { return t.name == "raspi4_aarch64"; });
  EXPECT_EQ(pi->machine, "aarch64");
  EXPECT_EQ(pi->preset, "aarch64");
  EXPECT_TRUE(has_elements(pi->features, {"fp-armv8", "neon"}));
  EXPECT_THAT(pi->emulator, ::testing::Contains("cortex-a72"));
  const auto gpu =
      std::find_if(read.begin(), read.end(), [](const auto& t) { return t.name == "cuda-sm_87"; });
  EXPECT_EQ(gpu->device, "cuda");
  EXPECT_EQ(gpu->machine, "aarch64");
  EXPECT_TRUE(gpu->emulator.empty());
}

// A feature that the runtime cannot tell would let code through that crashes.
TEST(TargetListTest, NeedsOnlyWhatThisMachineCanTell) {
  const std::optional<ListedTarget> best = best_target(built_in_targets(),
#if defined(__x86_64__)
                                                       "x86_64",
#elif defined(__aarch64__)
                                                       "aarch64",
#elif defined(__arm__)
                                                       "armv7l",
#elif defined(__riscv)
                                                       "riscv64",
#else
                                                       "none",
#endif
                                                       {});
  if (!best) GTEST_SKIP() << "no target is listed for this machine";
  for (const std::string& feature : best->features) {
    EXPECT_TRUE(this_cpu().contains(feature)) << feature;
  }
}

TEST(TargetListTest, ChoosesForTheCpu) {
  EXPECT_EQ(best_name("x86_64", {}), "x86_64_v4");
  EXPECT_EQ(best_name("x86_64", {{"avx512f", false}}), "x86_64_v3");
  EXPECT_EQ(best_name("x86_64", {{"avx512f", false}, {"avx2", false}}), "x86_64_v2");
  EXPECT_EQ(best_name("x86_64", weakest_cpu("x86_64")), "");
  EXPECT_EQ(best_name("aarch64", {{"dotprod", false}}), "raspi4_aarch64");
  EXPECT_EQ(best_name("aarch64", {}), "raspi5_aarch64");
  EXPECT_EQ(best_name("armv7l hard-float", {}), "raspi_armv7");
  EXPECT_EQ(best_name("armv7l", {{"vfp4", false}}), "pynq_z1");
  EXPECT_EQ(best_name("riscv64 double-float", {{"v", false}, {"zvl256b", false}}), "riscv64");
  EXPECT_EQ(best_name("riscv64 double-float", {{"zvl256b", false}}), "riscv64_v");
  EXPECT_EQ(best_name("riscv64 double-float", {}), "spacemit_k1");
  EXPECT_EQ(best_name("s390x", {}), "");
  EXPECT_EQ(best_name("", {}), "");
}

TEST(TargetListTest, RefusesOtherSchemasAndGaps) {
  EXPECT_TRUE(
      throws_error([] { parse_target_list(R"({"schema_version": 2, "targets": []})", "'list'"); },
                   ErrorKind::kIncompatible, "'list' has schema_version 2"));
  EXPECT_TRUE(
      throws_error([] { parse_target_list(R"({"schema_version": 1, "targets": [{}]})", "'list'"); },
                   ErrorKind::kFormat, "targets[0]"));
}

class TargetChoiceTest : public ::testing::Test {
 protected:
  TargetChoiceTest()
      : fitting_(folder_.write("fitting.so", library_bytes())),
        foreign_(folder_.write("foreign.so", foreign_library_bytes())) {}

  std::size_t choose(const std::vector<TargetCandidate>& candidates,
                     const std::string& wanted = "") const {
    return choose_target(candidates, wanted, "artifacts/m");
  }

  // On a CPU that has SSE4.2 and AVX2.
  std::size_t choose_with_avx2(const std::vector<TargetCandidate>& candidates) const {
    return choose_target(candidates, "", "artifacts/m",
                         {{"sse4.2", true}, {"avx2", true}, {"fma", true}, {"avx512f", false}});
  }

  TargetCandidate v2() const { return {"v2", fitting_, {{"sse4.2"}}}; }
  TargetCandidate v3() const { return {"v3", fitting_, {{"avx2", "fma", "sse4.2"}}}; }
  TargetCandidate v4() const { return {"v4", fitting_, {{"avx2", "avx512f", "fma", "sse4.2"}}}; }

  TemporaryFolder folder_;
  std::filesystem::path fitting_;
  std::filesystem::path foreign_;
};

TEST_F(TargetChoiceTest, KnowsTheMachineOfLibraries) {
  EXPECT_TRUE(library_fits_this_machine(fitting_));
  EXPECT_FALSE(library_fits_this_machine(foreign_));
  EXPECT_FALSE(library_fits_this_machine(folder_ / "missing.so"));
  EXPECT_FALSE(library_machine(fitting_).empty());
  EXPECT_NE(library_machine(fitting_), library_machine(foreign_));
  EXPECT_EQ(library_machine(folder_ / "missing.so"), "");
}

TEST_F(TargetChoiceTest, TakesTheOneThatIsAskedFor) {
  EXPECT_EQ(choose({{"a", fitting_}, {"b", foreign_}}, "b"), 1U);
  EXPECT_TRUE(throws_error([&] { choose({{"a", fitting_}}, "c"); }, ErrorKind::kFile,
                           "'artifacts/m' has no target 'c', but a ("));
}

TEST_F(TargetChoiceTest, TakesASingleOneAsItIs) { EXPECT_EQ(choose({{"a", foreign_}}), 0U); }

TEST_F(TargetChoiceTest, TakesTheOneForThisMachine) {
  EXPECT_EQ(choose({{"a", foreign_}, {"b", fitting_}, {"c", folder_ / "missing.so"}}), 1U);
}

TEST_F(TargetChoiceTest, PrefersNativeWhereItFits) {
  EXPECT_EQ(choose({{"a", fitting_}, {"native", fitting_}}), 1U);
  EXPECT_EQ(choose({{"a", fitting_}, {"native", foreign_}}), 0U);
}

TEST_F(TargetChoiceTest, TakesWhatMakesTheMostOfTheCpu) {
  EXPECT_EQ(choose_with_avx2({v2(), v3(), v4()}), 1U);
  EXPECT_EQ(choose_with_avx2({v4(), v2()}), 1U);
  EXPECT_EQ(choose_with_avx2({{"native", fitting_, {{"avx512f"}}}, v2(), v3()}), 2U);
  EXPECT_EQ(choose_with_avx2({v3(), {"native", fitting_, {{"sse4.2"}}}}), 1U);
  // What lists nothing may need anything.
  EXPECT_EQ(choose_with_avx2({v2(), {"old", fitting_, {}}}), 0U);
  EXPECT_EQ(choose_with_avx2({v4(), {"old", fitting_, {}}}), 1U);
}

TEST_F(TargetChoiceTest, RefusesToGuessBetweenFeatures) {
  for (const TargetCandidate& other : {TargetCandidate{"same", fitting_, {{"sse4.2"}}},
                                       TargetCandidate{"different", fitting_, {{"avx2"}}}}) {
    EXPECT_TRUE(throws_error([&] { choose_with_avx2({v2(), other}); }, ErrorKind::kUsage,
                             "choose one with --target"))
        << other.name;
  }
}

TEST_F(TargetChoiceTest, SaysWhatEachTargetMisses) {
  EXPECT_TRUE(throws_error([&] { choose_with_avx2({v4(), {"a", foreign_, {{"avx512f"}}}}); },
                           ErrorKind::kIncompatible, ", needs avx512f), a ("));
}

TEST_F(TargetChoiceTest, RefusesToGuess) {
  EXPECT_TRUE(throws_error([&] { choose({{"v2", fitting_}, {"v3", fitting_}}); }, ErrorKind::kUsage,
                           "choose one with --target"));
  EXPECT_TRUE(throws_error([&] { choose({{"a", foreign_}, {"b", foreign_}}); },
                           ErrorKind::kIncompatible, "no target for this machine"));
}

Package package_with(std::optional<std::vector<std::string>> features) {
  Package package;
  package.target = "x86_64_v3";
  package.files.library = "net/x86_64_v3/model.so";
  package.metadata = Metadata{};
  package.metadata->features = std::move(features);
  return package;
}

TEST(CpuCheckTest, NamesWhatIsMissing) {
  const CpuFeatures cpu{{"avx", true}, {"avx2", false}, {"fma", false}};
  EXPECT_TRUE(throws_error(
      [&] { check_cpu(package_with({{"avx", "avx2", "fma"}}), cpu); }, ErrorKind::kIncompatible,
      "'net/x86_64_v3/model.so' was compiled for the target 'x86_64_v3', which "
      "needs what this CPU lacks: avx2, fma"));
  EXPECT_TRUE(throws_error([&] { check_cpu(package_with({{"fma"}}), cpu); },
                           ErrorKind::kIncompatible, "scripts/compile_model"));
}

TEST(CpuCheckTest, LetsThroughWhatFitsOrSaysNothing) {
  const CpuFeatures cpu{{"avx", true}, {"avx2", false}};
  EXPECT_NO_THROW(check_cpu(package_with({{"avx", "from-the-future"}}), cpu));
  EXPECT_NO_THROW(check_cpu(package_with({{}}), cpu));
  EXPECT_NO_THROW(check_cpu(package_with(std::nullopt), cpu));
  Package bare = package_with({{"avx2"}});
  bare.metadata.reset();
  EXPECT_NO_THROW(check_cpu(bare, cpu));
}

TEST(CpuCheckTest, KeepsPackagesFromOpening) {
  const auto absent = std::find_if(this_cpu().begin(), this_cpu().end(),
                                   [](const auto& feature) { return !feature.second; });
  if (absent == this_cpu().end()) GTEST_SKIP() << "this CPU lacks nothing that is known here";
  const TemporaryFolder folder;
  write_triple(folder, "net/native/model");
  folder.write("net/native/metadata.json",
               R"({"schema_version": 1, "target": {"features": [")" + absent->first + "\"]}}");
  PackageRequest request{.model = "net", .artifacts = folder.path(), .target = ""};
  EXPECT_TRUE(throws_error([&] { open_package(request); }, ErrorKind::kIncompatible,
                           "lacks: " + absent->first));
  request.for_this_cpu = false;
  EXPECT_NO_THROW(open_package(request));
}

}  // namespace
}  // namespace run_model
