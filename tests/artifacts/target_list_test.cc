#include "artifacts/target_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/error_matcher.h"

namespace run_model {
namespace {

using ::testing::ElementsAre;
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
  EXPECT_THAT(pi->features, ElementsAre("fp-armv8", "neon"));
  EXPECT_THAT(pi->emulator, ::testing::Contains("cortex-a72"));
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
  EXPECT_EQ(best_name("riscv64 double-float", {}), "riscv64");
  EXPECT_EQ(best_name("s390x", {}), "");
  EXPECT_EQ(best_name("", {}), "");
}

TEST(TargetListTest, RefusesOtherSchemasAndGaps) {
  EXPECT_THAT([] { parse_target_list(R"({"schema_version": 2, "targets": []})", "'list'"); },
              ThrowsError(ErrorKind::kIncompatible, "'list' has schema_version 2"));
  EXPECT_THAT([] { parse_target_list(R"({"schema_version": 1, "targets": [{}]})", "'list'"); },
              ThrowsError(ErrorKind::kFormat, "targets[0]"));
}

}  // namespace
}  // namespace run_model
