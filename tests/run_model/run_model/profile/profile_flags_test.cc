#include "run_model/run_model/profile/profile_flags.h"

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "run_model/shared/arguments.h"
#include "tests/error_matcher.h"

namespace run_model {
namespace {

ProfileSettings read(const std::vector<std::string>& args) {
  const gflags::FlagSaver saver;
  set_flags(split_arguments(args).flags);
  return read_profile_settings();
}

TEST(ProfileFlagsTest, IsOffByDefault) {
  const ProfileSettings settings = read({});
  EXPECT_FALSE(settings.wanted);
  EXPECT_FALSE(settings.table);
}

TEST(ProfileFlagsTest, ReadsTheFlags) {
  const ProfileSettings settings = read({"--profile", "--profile-sort=order", "--profile-top=5"});
  EXPECT_TRUE(settings.wanted);
  EXPECT_TRUE(settings.table);
  EXPECT_EQ(settings.order, ProfileOrder::kRunning);
  EXPECT_EQ(settings.top, 5u);
}

TEST(ProfileFlagsTest, AFileIsEnough) {
  const ProfileSettings settings = read({"--profile-csv", "p.csv"});
  EXPECT_TRUE(settings.wanted);
  EXPECT_FALSE(settings.table);
  EXPECT_EQ(settings.csv, "p.csv");
}

TEST(ProfileFlagsTest, RefusesWhatMakesNoSense) {
  const auto refused = [](const std::vector<std::string>& args, const std::string& words) {
    EXPECT_THAT([&] { read(args); }, ThrowsError(ErrorKind::kUsage, words));
  };
  refused({"--profile", "--profile-sort=name"}, "'name', expected time or order");
  refused({"--profile", "--profile-top=-1"}, "expected 0 or more");
  refused({"--profile-top=3"}, "--profile-top has no meaning without --profile");
  refused({"--profile-sort=time", "--profile-csv=p"}, "--profile-sort has no meaning");
  refused({"--profile-html="}, "--profile-html is given an empty value");
  refused({"--profile-csv=x/../p", "--profile-json=p"}, "which another flag writes too");
}

}  // namespace
}  // namespace run_model
