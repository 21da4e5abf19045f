#include "run_model/check_zoo/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/has_elements.h"
#include "tests/temporary_folder.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Strings = std::vector<std::string>;

// Two models with golden cases; "net" is compiled for three targets, "big" for one.
class CheckZooPlanTest : public ::testing::Test {
 protected:
  CheckZooPlanTest() {
    for (const char* file :
         {"golden/net/cat.json", "golden/net/dog.json", "golden/big/cat.json",
          "zoo/net/native/model.so", "zoo/net/v9/model.so", "zoo/net/board/model.so",
          "zoo/big/native/model.so", "bin/emulate", "build/host/bin/check_zoo"}) {
      folder_.write(file, "x");
    }
    std::filesystem::permissions(folder_ / "bin/emulate", std::filesystem::perms::owner_all);
    settings_.artifacts = folder_ / "zoo";
    settings_.golden = {folder_ / "golden"};
    settings_.forms = {"triple"};
    host_.machine = "x86_64";
    host_.cpu = {{"avx", true}, {"avx9", false}};
    host_.program = folder_ / "build/host/bin/check_zoo";
    host_.search_path = "/nowhere:" + (folder_ / "bin").string();
    targets_.resize(4);
    targets_[0].name = "native";
    targets_[1].name = "v9";
    targets_[1].machine = "x86_64";
    targets_[1].preset = "host";
    targets_[1].features = {"avx", "avx9"};
    targets_[2].name = "board";
    targets_[2].machine = "aarch64";
    targets_[2].preset = "arm";
    targets_[2].emulator = {"emulate", "-L", "/usr"};
    targets_[3].name = "unused";
  }

  Plan plan() const { return plan_checks(settings_, targets_, host_); }

  PlannedJob only(const std::string& target) {
    settings_.models = {"net"};
    settings_.targets = {target};
    const Plan one = plan();
    EXPECT_EQ(one.jobs.size(), 1U);
    return one.jobs.at(0);
  }

  TemporaryFolder folder_;
  CheckSettings settings_;
  CheckHost host_;
  std::vector<ListedTarget> targets_;
};

TEST_F(CheckZooPlanTest, TakesEveryModelAndTheTargetsThatAreCompiled) {
  const Plan all = plan();
  ASSERT_EQ(all.jobs.size(), 6U);
  EXPECT_EQ(all.jobs[0].model, "big");
  EXPECT_EQ(all.jobs[0].target, "native");
  EXPECT_TRUE(has_elements(all.jobs[0].pictures, {"cat"}));
  EXPECT_EQ(all.jobs[0].skipped_because, "");
  EXPECT_THAT(all.jobs[1].skipped_because, HasSubstr("big/v9/model.so' is not there"));
  EXPECT_TRUE(has_elements(all.jobs[3].pictures, {"cat", "dog"}));
  EXPECT_TRUE(has_elements(all.targets_left_out, {"unused"}));
  settings_.all_targets = true;
  EXPECT_EQ(plan().jobs.size(), 8U);
  EXPECT_THAT(plan().targets_left_out, IsEmpty());
}

TEST_F(CheckZooPlanTest, OwnCodeRunsInThisProgram) {
  EXPECT_EQ(only("native").skipped_because, "");
  EXPECT_THAT(only("native").command, IsEmpty());
}

TEST_F(CheckZooPlanTest, ACpuWithoutTheFeaturesNeedsAnEmulator) {
  EXPECT_EQ(only("v9").skipped_because, "this CPU lacks avx9, and no emulator is known");
  targets_[1].emulator = {"emulate"};
  EXPECT_TRUE(has_elements(only("v9").command, {"emulate", host_.program.string()}));
  host_.cpu["avx9"] = true;
  EXPECT_THAT(only("v9").command, IsEmpty());
}

TEST_F(CheckZooPlanTest, OtherMachinesNeedAnEmulatorAndTheirProgram) {
  EXPECT_THAT(only("board").skipped_because, HasSubstr("arm/bin/check_zoo' is not built"));
  const auto program = folder_.write("build/arm/bin/check_zoo", "x");
  EXPECT_EQ(only("board").skipped_because, "");
  EXPECT_TRUE(has_elements(only("board").command, {"emulate", "-L", "/usr", program.string()}));
  settings_.programs = folder_ / "elsewhere";
  EXPECT_THAT(only("board").skipped_because, HasSubstr("elsewhere/arm/bin/check_zoo' is not"));
  host_.search_path = "/nowhere";
  EXPECT_EQ(only("board").skipped_because,
            "this machine is x86_64, not aarch64, and the emulator emulate is not installed "
            "(Debian: qemu-user)");
  host_.machine = "aarch64";
  EXPECT_THAT(only("board").command, IsEmpty());
  EXPECT_EQ(only("board").skipped_because, "");
}

TEST_F(CheckZooPlanTest, DevicesAreLookedForWhereThereIsSomethingToRun) {
  targets_[0].device = "toaster";
  targets_[3].device = "toaster";
  const PlannedJob job = only("native");
  EXPECT_TRUE(job.on_device);
  EXPECT_THAT(job.skipped_because, HasSubstr("without a driver for toaster"));
  EXPECT_THAT(only("unused").skipped_because, HasSubstr("is not there"));
}

TEST_F(CheckZooPlanTest, AnArchiveThatIsNotLinkedIsNamed) {
  settings_.forms = {"mlf"};
  EXPECT_THAT(only("native").skipped_because, HasSubstr("scripts/make_zoo"));
  folder_.write("zoo/net/native/forms/mlf/net.tar", "x");
  EXPECT_THAT(only("native").skipped_because, HasSubstr("scripts/link_mlf "));
  folder_.write("zoo/net/native/forms/mlf/linked/model.so", "x");
  EXPECT_EQ(only("native").skipped_because, "");
}

TEST_F(CheckZooPlanTest, AModelWithoutCasesIsNamed) {
  folder_.write("zoo/new/native/model.so", "x");
  settings_.models = {"new"};
  settings_.targets = {"native"};
  EXPECT_THAT(plan().jobs.at(0).skipped_because, HasSubstr("no golden case"));
}

TEST_F(CheckZooPlanTest, TheFirstFolderWithACaseCounts) {
  folder_.write("more/net/cat.json", "x");
  folder_.write("more/net/bird.json", "x");
  settings_.golden.push_back(folder_ / "more");
  EXPECT_TRUE(has_elements(only("native").pictures, {"bird", "cat", "dog"}));
}

TEST_F(CheckZooPlanTest, ShardsAreDisjointAndComplete) {
  Strings seen;
  for (std::size_t i = 0; i < 4; ++i) {
    settings_.shard = {i, 4};
    for (const PlannedJob& job : plan().jobs) seen.push_back(job.model + job.target);
  }
  EXPECT_THAT(seen, ::testing::UnorderedElementsAre("bignative", "bigv9", "bigboard", "netnative",
                                                    "netv9", "netboard"));
}

TEST_F(CheckZooPlanTest, PicturesChooseCases) {
  settings_.pictures = {"dog"};
  const Plan dogs = plan();
  ASSERT_EQ(dogs.jobs.size(), 3U);
  for (const PlannedJob& job : dogs.jobs) EXPECT_EQ(job.model, "net");
}

TEST_F(CheckZooPlanTest, RefusesUnknownNames) {
  settings_.pictures = {"bird"};
  EXPECT_TRUE(throws_error([&] { plan(); }, ErrorKind::kUsage,
                           "'bird', of which there is no golden case; there are "
                           "cases of cat, dog"));
  settings_.pictures.clear();
  settings_.targets = {"vax"};
  EXPECT_TRUE(throws_error([&] { plan(); }, ErrorKind::kUsage, "it has native, v9, board, unused"));
  settings_.models = {"none"};
  EXPECT_TRUE(throws_error([&] { plan(); }, ErrorKind::kUsage, "there are cases of big, net"));
}

TEST_F(CheckZooPlanTest, WhatIsNotThereMayBeSkippedByName) {
  settings_.models = {"unreachable"};
  settings_.targets = {"native"};
  settings_.pictures = {"cat"};
  settings_.allow_skip = true;
  const Plan one = plan();
  ASSERT_EQ(one.jobs.size(), 1U);
  EXPECT_EQ(one.jobs[0].model, "unreachable");
  EXPECT_THAT(one.jobs[0].skipped_because, HasSubstr("no golden case"));
}

}  // namespace
}  // namespace run_model
