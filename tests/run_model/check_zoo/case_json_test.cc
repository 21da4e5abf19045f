#include "run_model/check_zoo/case_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/error_matcher.h"

namespace run_model {
namespace {

CaseResult example() {
  CaseResult result;
  result.picture = "cat";
  result.fail("top-1", "the best class is 1, expected 2");
  result.input_compared = true;
  result.compared = true;
  result.scores.kind = ScoreKind::kProbabilities;
  result.scores.tolerance = {1e-3, 1e-4, 1e-5};
  result.scores.top5_equal = true;
  result.scores.largest_error = 0.5;
  result.scores.largest_error_index = 7;
  result.scores.tolerance_used = 400;
  result.scores.expected_top = {{2, "cat", 0.75}, {1, "", 0.25}};
  result.scores.actual_top = {{1, "", 0.5}, {2, "cat", 0.5}};
  result.preprocess_ms = 1.5;
  result.run_ms = 2.5;
  result.location = {"departs first: node 3", "  reads 'x'"};
  return result;
}

CaseResult parse(const nlohmann::json& json) {
  const std::string source = "a line";
  return parse_case(JsonField(json, source));
}

nlohmann::json as_json(const CaseResult& result) {
  return nlohmann::json::parse(case_json(result).dump());
}

TEST(CheckZooCaseJsonTest, NothingIsLostOnTheWay) {
  const CaseResult result = parse(as_json(example()));
  EXPECT_EQ(case_json(result), case_json(example()));
  EXPECT_EQ(result.picture, "cat");
  EXPECT_EQ(result.status, CaseStatus::kFailed);
  EXPECT_EQ(result.scores.actual_top[1].label, "cat");
  EXPECT_EQ(result.scores.largest_error_index, 7U);
  EXPECT_EQ(result.location.size(), 2U);

  CaseResult skipped;
  skipped.picture = "dog";
  skipped.status = CaseStatus::kSkipped;
  skipped.skipped_because = "not there";
  EXPECT_EQ(case_json(parse(as_json(skipped))), case_json(skipped));
}

TEST(CheckZooCaseJsonTest, RefusesWhatDoesNotFit) {
  nlohmann::json passed = as_json(example());
  passed["status"] = "passed";
  EXPECT_THAT([&] { parse(passed); }, ThrowsError(ErrorKind::kFormat, "do not agree"));
  nlohmann::json unexplained = as_json(example());
  unexplained["failures"] = nlohmann::json::array();
  EXPECT_THAT([&] { parse(unexplained); }, ThrowsError(ErrorKind::kFormat, "do not agree"));
  for (const char* key : {"picture", "status", "failures", "input_compared", "scores", "timing"}) {
    nlohmann::json lacking = as_json(example());
    lacking.erase(key);
    EXPECT_THAT([&] { parse(lacking); }, ThrowsError(ErrorKind::kFormat, key));
  }
}

}  // namespace
}  // namespace run_model
