#include "base/enum_names.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/throws_error.h"

namespace run_model {
namespace {

enum class Fit { kCrop, kSquash, kLetterbox, kUnnamed };

constexpr auto kFits = enum_names<Fit>(
    {{Fit::kCrop, "crop"}, {Fit::kSquash, "squash"}, {Fit::kLetterbox, "letterbox"}});

TEST(EnumNamesTest, NamesValues) {
  EXPECT_EQ(kFits.name(Fit::kSquash), "squash");
  EXPECT_EQ(kFits.name(Fit::kUnnamed), "unknown");
  static_assert(kFits.name(Fit::kCrop) == "crop");
}

TEST(EnumNamesTest, FindsValuesByTheirExactNames) {
  EXPECT_EQ(kFits.find("letterbox"), Fit::kLetterbox);
  EXPECT_EQ(kFits.find("Letterbox"), std::nullopt);
  EXPECT_EQ(kFits.find(""), std::nullopt);
}

TEST(EnumNamesTest, RefusesOtherNamesWithTheKnownOnes) {
  EXPECT_EQ(kFits.parse("crop", "fit"), Fit::kCrop);
  EXPECT_TRUE(throws_error([] { kFits.parse("cro\n", "fit"); }, ErrorKind::kUsage,
                           "unknown fit 'cro\\x0a'; it is one of crop, squash, letterbox"));
}

TEST(EnumNamesTest, ListsNamesInTheirOrder) {
  EXPECT_EQ(kFits.list(), "crop, squash, letterbox");
  EXPECT_EQ(kFits.list(" and "), "crop, squash and letterbox");
  EXPECT_EQ(kFits.names()[2], "letterbox");
}

}  // namespace
}  // namespace run_model
