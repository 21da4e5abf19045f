// What programs say about themselves, of all three programs.
#include "run_model/shared/manual.h"

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <string>

#include <run_model/decode.h>
#include <run_model/geometry.h>
#include <run_model/preprocessing.h>
#include <run_model/resize.h>
#include "run_model/check_zoo/flags.h"
#include "run_model/rpc_server/flags.h"
#include "run_model/run_model/flags.h"
#include "run_model/run_model/tensor_values.h"
#include "run_model/shared/help_text.h"
#include "tests/temporary_folder.h"

namespace run_model {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class ManualTest : public ::testing::TestWithParam<const Manual*> {
 protected:
  const Manual& manual() const { return *GetParam(); }
  std::string help() const { return help_text(manual()); }
};

TEST_P(ManualTest, HelpFitsATerminal) {
  const std::string text = help();
  std::size_t start = 0;
  for (std::size_t end = 0; (end = text.find('\n', start)) != text.npos; start = end + 1) {
    EXPECT_LE(end - start, 100u) << text.substr(start, end - start);
  }
}

TEST_P(ManualTest, EveryFlagIsDescribedOnce) {
  std::set<std::string> names;
  for (const FlagGroup& group : manual().groups) {
    for (const Flag& flag : group.flags) {
      EXPECT_TRUE(names.insert(flag.name).second) << flag.name;
      for (const std::string& alias : flag_aliases(flag)) {
        EXPECT_TRUE(names.insert(alias).second) << alias;
      }
      if (flag.words != nullptr) {
        EXPECT_THAT(help(), HasSubstr("  " + flag_usage(flag)));
      }
    }
  }
  EXPECT_GT(names.size(), 10u);
  EXPECT_THAT(help(), Not(HasSubstr("{}")));
}

TEST_P(ManualTest, DefaultsAreValuesOfTheirFlags) {
  for (const FlagGroup& group : manual().groups) {
    for (const Flag& flag : group.flags) {
      const std::vector<std::string> choices = flag_choices(flag);
      if (choices.empty() || flag.standard == nullptr) continue;
      EXPECT_THAT(choices, testing::Contains(flag.standard)) << flag.name;
    }
  }
}

TEST_P(ManualTest, ExitCodesAscend) {
  const std::vector<ExitCode> codes = exit_codes(manual());
  for (std::size_t i = 1; i < codes.size(); ++i) EXPECT_LT(codes[i - 1].code, codes[i].code);
  EXPECT_THAT(help(), HasSubstr("\nExit codes:\n  0  " + std::string(manual().success) + "\n" +
                                "  1  internal error\n  2  wrong usage\n"));
}

INSTANTIATE_TEST_SUITE_P(Programs, ManualTest,
                         ::testing::Values(&kRunManual, &kCheckManual, &kServerManual),
                         [](const auto& test) { return std::string(test.param->program); });

TEST(ManualChoicesTest, AreWhatTheLibrariesKnow) {
  for (const auto& name : flag_choices(*find_flag(kRunManual, "resizer"))) {
    EXPECT_EQ(resizer_name(parse_resizer(name)), name);
  }
  for (const auto& name : flag_choices(*find_flag(kRunManual, "jpeg_decoder"))) {
    EXPECT_EQ(jpeg_decoder_name(parse_jpeg_decoder(name)), name);
  }
  for (const auto& name : flag_choices(*find_flag(kRunManual, "fit"))) {
    EXPECT_EQ(fit_name(parse_fit(name)), name);
  }
  for (const auto& name : flag_choices(*find_flag(kRunManual, "layout"))) {
    EXPECT_EQ(layout_name(parse_layout(name)), name);
  }
  for (const auto& name : flag_choices(*find_flag(kRunManual, "fill_mode"))) {
    EXPECT_NO_THROW(parse_fill_mode(name));
  }
}

// The releases whose artifacts tests/compat runs, and 0.19, the last with a graph executor.
TEST(ManualTextTest, EveryTextNamesTheSameReleasesOfTvm) {
  const std::filesystem::path source = RUN_MODEL_SOURCE_DIR;
  const std::string releases = "0.7 to 0.19";
  EXPECT_THAT(std::string(kRunManual.description), HasSubstr("TVM (" + releases));
  EXPECT_THAT(TemporaryFolder::read(source / "README.md"), HasSubstr("TVM " + releases));
  EXPECT_THAT(TemporaryFolder::read(source / "cmake/RunModelPackage.cmake"),
              HasSubstr("TVM " + releases));
}

TEST(ManualTextTest, ParagraphsAndKeptLines) {
  const std::vector<Block> parts = blocks("one\ntwo\n\nthree\n  kept\n  too\nfour");
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].text, "one two");
  EXPECT_EQ(parts[1].text, "three");
  EXPECT_TRUE(parts[2].kept);
  EXPECT_EQ(parts[2].text, "  kept\n  too");
  EXPECT_EQ(parts[3].text, "four");
}

}  // namespace
}  // namespace run_model
