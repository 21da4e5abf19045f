#include <run_model/top_k.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace run_model {
namespace {

using ::testing::ElementsAre;

std::vector<std::size_t> indices(const std::vector<Prediction>& predictions) {
  std::vector<std::size_t> result;
  for (const Prediction& prediction : predictions) result.push_back(prediction.index);
  return result;
}

TEST(SoftmaxTest, MatchesItsDefinition) {
  const std::vector<double> result = softmax(std::vector<double>{1, 2, 4});
  const double sum = std::exp(1) + std::exp(2) + std::exp(4);
  ASSERT_EQ(result.size(), 3U);
  EXPECT_NEAR(result[0], std::exp(1) / sum, 1e-15);
  EXPECT_NEAR(result[1], std::exp(2) / sum, 1e-15);
  EXPECT_NEAR(result[2], std::exp(4) / sum, 1e-15);
}

TEST(SoftmaxTest, DoesNotOverflow) {
  EXPECT_THAT(softmax(std::vector<double>{1e300, 1e300}), ElementsAre(0.5, 0.5));
  EXPECT_THAT(softmax(std::vector<double>{-1e300, 1e300}), ElementsAre(0, 1));
  EXPECT_THAT(softmax(std::vector<double>{}), ElementsAre());
}

TEST(TopKTest, OrdersByScoreThenIndex) {
  const std::vector<double> scores{3, 9, 9, 1, 9};
  EXPECT_THAT(indices(top_k(scores, 4)), ElementsAre(1, 2, 4, 0));
}

TEST(TopKTest, AppliesSoftmaxToLogitsOnce) {
  const std::vector<Prediction> best = top_k(std::vector<double>{0, std::log(3)}, 2);
  EXPECT_THAT(indices(best), ElementsAre(1, 0));
  EXPECT_NEAR(best[0].probability, 0.75, 1e-15);
  EXPECT_NEAR(best[1].probability, 0.25, 1e-15);
}

TEST(TopKTest, LeavesADistributionAlone) {
  const std::vector<Prediction> best = top_k(std::vector<double>{0.1, 0.9}, 1);
  ASSERT_EQ(best.size(), 1U);
  EXPECT_EQ(best[0].index, 1U);
  EXPECT_EQ(best[0].probability, 0.9);
}

TEST(TopKTest, ScoresWithoutProbabilityAreStillOrdered) {
  const std::vector<Prediction> best = top_k(std::vector<double>{5000, -2000, -1000}, 3);
  EXPECT_THAT(indices(best), ElementsAre(0, 2, 1));
  EXPECT_EQ(best[2].probability, 0.0);
}

TEST(TopKTest, CountIsCappedByTheClasses) {
  EXPECT_EQ(top_k(std::vector<double>{1, 2}, 5).size(), 2U);
  EXPECT_EQ(top_k(std::vector<double>{1, 2}, 0).size(), 0U);
}

}  // namespace
}  // namespace run_model
