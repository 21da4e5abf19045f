#include "artifacts/target_choice.h"

#include <gtest/gtest.h>

#include "artifacts/library_machine.h"
#include "tests/artifacts/test_artifact.h"
#include "tests/error_matcher.h"

namespace run_model {
namespace {

class TargetChoiceTest : public ::testing::Test {
 protected:
  TargetChoiceTest()
      : fitting_(folder_.write("fitting.so", library_bytes())),
        foreign_(folder_.write("foreign.so", foreign_library_bytes())) {}

  std::size_t choose(const std::vector<TargetCandidate>& candidates,
                     const std::string& wanted = "") const {
    return choose_target(candidates, wanted, "artifacts/m");
  }

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
  EXPECT_THAT(
      [&] {
        choose({{"a", fitting_}}, "c");
      },
      ThrowsError(ErrorCode::kFile, "'artifacts/m' has no target 'c', but a ("));
}

TEST_F(TargetChoiceTest, TakesASingleOneAsItIs) { EXPECT_EQ(choose({{"a", foreign_}}), 0U); }

TEST_F(TargetChoiceTest, TakesTheOneForThisMachine) {
  EXPECT_EQ(choose({{"a", foreign_}, {"b", fitting_}, {"c", folder_ / "missing.so"}}), 1U);
}

TEST_F(TargetChoiceTest, PrefersNativeWhereItFits) {
  EXPECT_EQ(choose({{"a", fitting_}, {"native", fitting_}}), 1U);
  EXPECT_EQ(choose({{"a", fitting_}, {"native", foreign_}}), 0U);
}

TEST_F(TargetChoiceTest, RefusesToGuess) {
  EXPECT_THAT(
      [&] {
        choose({{"v2", fitting_}, {"v3", fitting_}});
      },
      ThrowsError(ErrorCode::kUsage, "choose one with --target"));
  EXPECT_THAT(
      [&] {
        choose({{"a", foreign_}, {"b", foreign_}});
      },
      ThrowsError(ErrorCode::kIncompatible, "no target for this machine"));
}

}  // namespace
}  // namespace run_model
