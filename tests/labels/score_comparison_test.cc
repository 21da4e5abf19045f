#include <run_model/score_comparison.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/has_elements.h"
#include "tests/throws_error.h"

namespace run_model {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Scores = std::vector<double>;

// Classes 2, 4, 1, 5, 3 are the best, then 0; 4 and 1 are close to each other, and so are 3 and 0.
const Scores kReference{0.999, 3.0, 5.0, 1.0, 3.001, 2.0, -8.0};
constexpr ScoreTolerance kTolerance{0.01, 0.001, 0.005};

ScoreComparison compare(const Scores& actual, const ScoreTolerance& tolerance = kTolerance) {
  return compare_scores(kReference, actual, tolerance);
}

std::vector<ScoreRule> rules(const ScoreComparison& comparison) {
  std::vector<ScoreRule> list;
  for (const ScoreFailure& failure : comparison.failures) list.push_back(failure.rule);
  return list;
}

TEST(ScoreComparisonTest, EqualScoresPass) {
  const ScoreComparison result = compare(kReference);
  EXPECT_THAT(result.failures, IsEmpty());
  EXPECT_TRUE(has_elements(result.expected_top, {2, 4, 1, 5, 3}));
  EXPECT_TRUE(has_elements(result.actual_top, {2, 4, 1, 5, 3}));
  EXPECT_EQ(result.largest_error, 0);
  EXPECT_EQ(result.tolerance_used, 0);
}

TEST(ScoreComparisonTest, MeasuresTheLargestErrorAndTheToleranceUsed) {
  Scores actual = kReference;
  actual[6] += 0.009;   // of 0.01 + 0.008
  actual[3] -= 0.0055;  // of 0.01 + 0.001
  const ScoreComparison result =
      compare_scores(kReference, actual, {.atol = 0.01, .rtol = 0.001, .order = 1});
  EXPECT_EQ(result.largest_error_index, 6U);
  EXPECT_NEAR(result.largest_error, 0.009, 1e-12);
  EXPECT_NEAR(result.tolerance_used, 0.5, 1e-9);
}

TEST(ScoreComparisonTest, AValueBeyondItsToleranceFails) {
  Scores actual = kReference;
  actual[6] = -8.0 + 0.0179;  // 0.01 + 0.001 * 8 are allowed
  EXPECT_THAT(compare(actual).failures, IsEmpty());
  actual[6] = -8.0 + 0.0181;
  const ScoreComparison result = compare(actual);
  ASSERT_TRUE(has_elements(rules(result), {ScoreRule::kTolerance}));
  EXPECT_EQ(result.outside, 1U);
  EXPECT_THAT(result.failures[0].message,
              HasSubstr("1 of 7 scores are beyond the tolerance, the worst at 6: -7.9819, expected "
                        "-8 within 0.018"));
}

TEST(ScoreComparisonTest, ExactnessCanBeAskedFor) {
  EXPECT_THAT(compare(kReference, {0, 0, 0}).failures, IsEmpty());
  Scores actual = kReference;
  actual[6] += 1e-9;
  EXPECT_TRUE(has_elements(rules(compare(actual, {0, 0, 0})), {ScoreRule::kTolerance}));
}

TEST(ScoreComparisonTest, AnotherBestClassFails) {
  Scores actual = kReference;
  actual[4] = 5.5;
  const ScoreComparison result = compare(actual, {10, 0, 0.005});
  EXPECT_TRUE(has_elements(rules(result), {ScoreRule::kTop1, ScoreRule::kOrder}));
  EXPECT_EQ(result.failures[0].message, "the best class is 4, expected 2");
}

TEST(ScoreComparisonTest, SaysThatTheReferenceIsUndecided) {
  const Scores reference{1.0, 1.0001};
  const ScoreComparison result = compare_scores(reference, Scores{1.0002, 1.0001}, kTolerance);
  ASSERT_TRUE(has_elements(rules(result), {ScoreRule::kTop1}));
  EXPECT_THAT(result.failures[0].message, HasSubstr("only 0.0001 apart, so this picture may be"));
}

TEST(ScoreComparisonTest, AnotherSetOfBestClassesFails) {
  Scores actual = kReference;
  actual[0] = 1.001;  // overtakes class 3
  const ScoreComparison result = compare(actual);
  ASSERT_TRUE(has_elements(rules(result), {ScoreRule::kTop5}));
  EXPECT_THAT(
      result.failures[0].message,
      HasSubstr("class 3 is not among the best 5; the reference has them only 0.001 apart"));
}

TEST(ScoreComparisonTest, CloseNeighboursMayChangePlaces) {
  Scores actual = kReference;
  std::swap(actual[4], actual[1]);  // 0.001 apart
  EXPECT_THAT(compare(actual).failures, IsEmpty());
  const ScoreComparison strict = compare(actual, {0.01, 0.001, 0.0005});
  ASSERT_TRUE(has_elements(rules(strict), {ScoreRule::kOrder}));
  EXPECT_THAT(
      strict.failures[0].message,
      HasSubstr("classes 4 and 1 have changed places, which the reference has 0.001 apart"));
}

TEST(ScoreComparisonTest, OthersMayNot) {
  Scores actual = kReference;
  std::swap(actual[5], actual[3]);
  EXPECT_TRUE(has_elements(rules(compare(actual, {10, 0, 0.005})), {ScoreRule::kOrder}));
}

TEST(ScoreComparisonTest, NanAndInfinityFail) {
  for (const double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Scores actual = kReference;
    actual[3] = bad;
    const ScoreComparison result = compare(actual);
    ASSERT_TRUE(has_elements(rules(result), {ScoreRule::kFinite}));
    EXPECT_EQ(result.failures[0].message, "1 of 7 scores are NaN or infinite, the first at 3");
    EXPECT_THAT(result.actual_top, IsEmpty());
  }
}

TEST(ScoreComparisonTest, FewerThanFiveClasses) {
  const Scores two{0.25, 0.75};
  EXPECT_THAT(compare_scores(two, two, kTolerance).failures, IsEmpty());
  EXPECT_TRUE(has_elements(rules(compare_scores(two, Scores{0.75, 0.25}, {1, 0, 0.1})),
                           {ScoreRule::kTop1, ScoreRule::kOrder}));
}

TEST(ScoreComparisonTest, RefusesAnotherNumberOfScores) {
  EXPECT_TRUE(throws_error([] { compare(Scores(8)); }, ErrorKind::kMismatch,
                           "gave 8 scores, and the reference has 7"));
  EXPECT_TRUE(throws_error([] { compare_scores({}, {}, kTolerance); }, ErrorKind::kMismatch, "0"));
}

TEST(ScoreComparisonTest, NamesOfKinds) {
  for (const ScoreKind kind : {ScoreKind::kLogits, ScoreKind::kProbabilities}) {
    EXPECT_EQ(parse_score_kind(score_kind_name(kind)), kind);
  }
  EXPECT_TRUE(throws_error([] { parse_score_kind("odds"); }, ErrorKind::kUsage, "'odds'"));
}

}  // namespace
}  // namespace run_model
