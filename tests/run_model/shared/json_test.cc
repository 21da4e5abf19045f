#include "run_model/shared/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

namespace run_model {
namespace {

TEST(JsonTest, MembersKeepTheirOrder) {
  Json json;
  json.put("b", 1);
  json.put("a", Json::array({true, "x", nullptr == nullptr, Json()}));
  json.put("b", 2.0);
  EXPECT_EQ(json.compact(), R"({"b":2.0,"a":[true,"x",true,null]})");
  EXPECT_EQ(Json::object().compact(), "{}");
  EXPECT_EQ(Json::array().compact(), "[]");
}

TEST(JsonTest, KnowsTheProgramsTypes) {
  EXPECT_EQ(Json(std::vector<std::string>{"a", "b"}).compact(), R"(["a","b"])");
  EXPECT_EQ(Json(std::optional<int>()).compact(), "null");
  EXPECT_EQ(Json(std::optional<int>(3)).compact(), "3");
  EXPECT_EQ(Json(std::numeric_limits<std::uint64_t>::max()).compact(), "18446744073709551615");
  EXPECT_EQ(Json(std::numeric_limits<std::int64_t>::min()).compact(), "-9223372036854775808");
  EXPECT_EQ(text_or_null("").compact(), "null");
}

// Against another writer: the same text for the same numbers.
TEST(JsonTest, WritesNumbersAsOthersDo) {
  for (const double number : {0.0, -0.0, 1.0, -2.5, 0.1, 1e-4, 1e-5, 123456.789, 1e14, 1e15, 1e16,
                              1.5e300, 5e-324, 0.30000000000000004, 1792 / 1e6}) {
    EXPECT_EQ(Json(number).compact(), nlohmann::json(number).dump());
  }
  EXPECT_EQ(Json(std::numeric_limits<double>::infinity()).compact(), "null");
  EXPECT_EQ(Json(std::numeric_limits<double>::quiet_NaN()).compact(), "null");
}

TEST(JsonTest, EscapesStrings) {
  std::string all;
  for (int c = 0; c < 127; ++c) all += static_cast<char>(c);
  all += "ü€\U0001F600";
  EXPECT_EQ(Json(all).compact(), nlohmann::json(all).dump());
  EXPECT_EQ(Json(all).compact(true), nlohmann::json(all).dump(-1, ' ', true));
  EXPECT_EQ(Json("a\xff"
                 "b\xc3")
                .compact(),
            "\"a\uFFFDb\uFFFD\"");
}

TEST(JsonTest, FillsLinesForPeople) {
  Json json = Json::object({{"short", Json::array({1, 2, 3})}});
  json.put("long", Json(std::vector<int>(40, 1000)));
  json.put("inner", Json::object({{"text", std::string(60, 'x')}, {"more", "yyyyyyyyyyyyyy"}}));
  const std::string text = json.text();
  EXPECT_THAT(text, testing::StartsWith("{\n  \"short\": [1, 2, 3],\n  \"long\": [\n    1000, "));
  EXPECT_THAT(text, testing::HasSubstr("  \"inner\": {\n    \"text\": \"xxx"));
  EXPECT_TRUE(text.ends_with("}\n"));
  std::size_t start = 0;
  for (std::size_t end = 0; (end = text.find('\n', start)) != text.npos; start = end + 1) {
    EXPECT_LE(end - start, 80u);
  }
  EXPECT_EQ(nlohmann::json::parse(text)["long"].size(), 40u);
}

}  // namespace
}  // namespace run_model
