#include "run_model/shared/arguments.h"

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "run_model/run_model/flags.h"
#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using ::testing::IsEmpty;
using Strings = std::vector<std::string>;

// "mean=1,2,3" for each flag.
Strings flags_of(const Strings& args) {
  Strings result;
  for (const FlagArgument& flag : split_arguments(kRunManual, args).flags) {
    result.push_back(flag.name + "=" + flag.value);
  }
  return result;
}

Strings positional_of(const Strings& args) { return split_arguments(kRunManual, args).positional; }

TEST(SplitArgumentsTest, SeparatesFlagsFromArguments) {
  const Strings args{"net", "dir", "--topk", "3", "cat.png", "--json", "labels.txt", "--target=v3"};
  EXPECT_TRUE(has_elements(positional_of(args), {"net", "dir", "cat.png", "labels.txt"}));
  EXPECT_TRUE(has_elements(flags_of(args), {"topk=3", "json=true", "target=v3"}));
}

TEST(SplitArgumentsTest, UnderstandsSpellings) {
  EXPECT_TRUE(has_elements(flags_of({"-topk=3", "--dump-input", "x", "--dump_input=y"}),
                           {"topk=3", "dump_input=x", "dump_input=y"}));
  EXPECT_TRUE(has_elements(flags_of({"-i", "in.npz", "-o=out.npz", "-h"}),
                           {"inputs=in.npz", "outputs=out.npz", "help=true"}));
  EXPECT_TRUE(
      has_elements(flags_of({"--no-normalize", "--nonormalize", "--no_verify", "--json=false"}),
                   {"normalize=false", "normalize=false", "verify=false", "json=false"}));
}

TEST(SplitArgumentsTest, TakesThreeValuesForEachChannel) {
  EXPECT_TRUE(has_elements(flags_of({"--mean", "104", "117", "123", "--std", "-1", "+2", "3e-1"}),
                           {"mean=104,117,123", "std=-1,+2,3e-1"}));
  EXPECT_TRUE(
      has_elements(flags_of({"--mean=1,2,3", "--std", "4,5,6"}), {"mean=1,2,3", "std=4,5,6"}));
  EXPECT_TRUE(has_elements(positional_of({"a", "--mean", "1", "2", "3", "4"}), {"a", "4"}));
}

TEST(SplitArgumentsTest, TooFewValuesSayHowMany) {
  EXPECT_TRUE(throws_error([] { split_arguments(kRunManual, Strings{"--mean"}); },
                           ErrorKind::kUsage,
                           "--mean takes three numbers, one for each channel, but "
                           "none was given; write it as in --mean 0.485"));
  EXPECT_TRUE(throws_error([] { split_arguments(kRunManual, Strings{"--mean", "1", "--std"}); },
                           ErrorKind::kUsage, "but 1 was given before '--std'"));
  EXPECT_TRUE(throws_error(
      [] { split_arguments(kRunManual, Strings{"--std", "1", "2", "cat.png"}); }, ErrorKind::kUsage,
      "--std takes three numbers, one for each channel, but 2 "
      "were given before 'cat.png'"));
  EXPECT_TRUE(throws_error([] { split_arguments(kRunManual, Strings{"--mean", "1", "2", "nan"}); },
                           ErrorKind::kUsage, "before 'nan'"));
}

TEST(SplitArgumentsTest, ValuesMayBeNegative) {
  EXPECT_TRUE(has_elements(flags_of({"--topk", "-1"}), {"topk=-1"}));
}

TEST(SplitArgumentsTest, MissingValuesAreNamed) {
  EXPECT_TRUE(throws_error([] { split_arguments(kRunManual, Strings{"--dump-input"}); },
                           ErrorKind::kUsage, "--dump-input needs a value"));
  EXPECT_TRUE(throws_error([] { split_arguments(kRunManual, Strings{"--target", "--json"}); },
                           ErrorKind::kUsage, "--target needs a value before '--json'"));
}

TEST(SplitArgumentsTest, UnknownFlagsAreNamed) {
  for (const std::string flag :
       {"--nope", "-x", "--no-topk", "--flagfile=x", "--fromenv", "---json"}) {
    EXPECT_TRUE(throws_error([&] { split_arguments(kRunManual, Strings{flag}); }, ErrorKind::kUsage,
                             "there is no flag '" + flag.substr(0, flag.find('='))))
        << flag;
  }
  EXPECT_TRUE(throws_error([] { split_arguments(kRunManual, Strings{"--no-json=true"}); },
                           ErrorKind::kUsage, "takes no value"));
}

TEST(SplitArgumentsTest, DashesAlone) {
  EXPECT_TRUE(has_elements(positional_of({"-", "--", "--json", "-x"}), {"-", "--json", "-x"}));
  EXPECT_THAT(flags_of({"--", "--json"}), IsEmpty());
}

TEST(SplitArgumentsTest, TheNearestFlagIsOffered) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"--tpok", "--topk"},
      {"--repat=3", "--repeat"},
      {"--print_tiem", "--print-time"},
      {"--save-output", "--save-outputs"},
      {"--no-verfy", "--no-verify"},
      {"--treads", "--threads"},
  };
  for (const auto& [given, meant] : cases) {
    EXPECT_TRUE(throws_error([&] { split_arguments(kRunManual, Strings{given}); },
                             ErrorKind::kUsage, "; did you mean " + meant + "? "));
  }
  for (const std::string far : {"--nope", "-x", "--flagfile=x"}) {
    EXPECT_TRUE(throws_error([&] { split_arguments(kRunManual, Strings{far}); }, ErrorKind::kUsage,
                             "'; --help lists the flags"));
  }
}

class SetFlagsTest : public ::testing::Test {
 private:
  gflags::FlagSaver saver_;
};

TEST_F(SetFlagsTest, SetsGflags) {
  set_flags(kRunManual, {{"topk", "7"}, {"target", "v3"}, {"normalize", "false"}});
  EXPECT_EQ(run_flags.topk, 7);
  EXPECT_EQ(run_flags.target, "v3");
  EXPECT_TRUE(flag_is_set("normalize"));
  EXPECT_FALSE(run_flags.normalize);
  EXPECT_FALSE(flag_is_set("bgr"));
}

TEST_F(SetFlagsTest, WrongTypesAreNamed) {
  EXPECT_TRUE(throws_error([] { set_flags(kRunManual, {{"topk", "many"}}); }, ErrorKind::kUsage,
                           "--topk is given 'many', but takes a whole number"));
  EXPECT_TRUE(throws_error([] { set_flags(kRunManual, {{"topk", "99999999999"}}); },
                           ErrorKind::kUsage, "--topk"));
  EXPECT_TRUE(throws_error([] { set_flags(kRunManual, {{"json", "perhaps"}}); }, ErrorKind::kUsage,
                           "takes true or false"));
}

TEST_F(SetFlagsTest, OtherValuesThanTheChoicesAreNamed) {
  EXPECT_TRUE(
      throws_error([] { set_flags(kRunManual, {{"fit", "stretch"}}); }, ErrorKind::kUsage,
                   "--fit is 'stretch', expected crop, squash, letterbox, pad or squash-crop"));
  EXPECT_NO_THROW(set_flags(kRunManual, {{"fit", "squash"}}));
}

TEST_F(SetFlagsTest, ContradictionsAreRefusedInEitherOrder) {
  EXPECT_TRUE(
      throws_error([] { set_flags(kRunManual, {{"normalize", "true"}, {"normalize", "false"}}); },
                   ErrorKind::kUsage, "--normalize and --no-normalize contradict"));
  EXPECT_TRUE(
      throws_error([] { set_flags(kRunManual, {{"normalize", "false"}, {"normalize", "1"}}); },
                   ErrorKind::kUsage, "--normalize and --no-normalize contradict"));
  EXPECT_NO_THROW(set_flags(kRunManual, {{"json", "true"}, {"json", "1"}}));
}

TEST(ParseTripleTest, NeedsThreeNumbers) {
  EXPECT_TRUE(has_elements(parse_triple("mean", "1,-2.5,3e2"), {1, -2.5, 300}));
  EXPECT_TRUE(
      throws_error([] { parse_triple("mean", "1,2"); }, ErrorKind::kUsage, "but 2 were given"));
  EXPECT_TRUE(
      throws_error([] { parse_triple("mean", "1,2,3,4"); }, ErrorKind::kUsage, "but 4 were given"));
  EXPECT_TRUE(throws_error([] { parse_triple("mean", "1,,3"); }, ErrorKind::kUsage, "'' is none"));
  EXPECT_TRUE(
      throws_error([] { parse_triple("mean", "1,2,inf"); }, ErrorKind::kUsage, "'inf' is none"));
}

}  // namespace
}  // namespace run_model
