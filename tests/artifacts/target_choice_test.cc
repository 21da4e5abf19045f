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
  EXPECT_THAT([&] { choose({{"a", fitting_}}, "c"); },
              ThrowsError(ErrorKind::kFile, "'artifacts/m' has no target 'c', but a ("));
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
    EXPECT_THAT([&] { choose_with_avx2({v2(), other}); },
                ThrowsError(ErrorKind::kUsage, "choose one with --target"))
        << other.name;
  }
}

TEST_F(TargetChoiceTest, SaysWhatEachTargetMisses) {
  EXPECT_THAT([&] { choose_with_avx2({v4(), {"a", foreign_, {{"avx512f"}}}}); },
              ThrowsError(ErrorKind::kIncompatible, ", needs avx512f), a ("));
}

TEST_F(TargetChoiceTest, RefusesToGuess) {
  EXPECT_THAT([&] { choose({{"v2", fitting_}, {"v3", fitting_}}); },
              ThrowsError(ErrorKind::kUsage, "choose one with --target"));
  EXPECT_THAT([&] { choose({{"a", foreign_}, {"b", foreign_}}); },
              ThrowsError(ErrorKind::kIncompatible, "no target for this machine"));
}

}  // namespace
}  // namespace run_model
