#include "run_model/check_zoo/locate_departure.h"
#include "tests/has_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace run_model {
namespace {

using ::testing::IsEmpty;

Tensor filled(const std::vector<std::int64_t>& shape, float start) {
  Tensor tensor = Tensor::empty(shape, {kDLFloat, 32, 1});
  std::iota(tensor.elements<float>().begin(), tensor.elements<float>().end(), start);
  return tensor;
}

Tensor zeros(const std::vector<std::int64_t>& shape) {
  Tensor tensor = Tensor::empty(shape, {kDLFloat, 32, 1});
  std::fill(tensor.elements<float>().begin(), tensor.elements<float>().end(), 0.0F);
  return tensor;
}

ReferenceMatch match_of(const Tensor& output, const Tensor& reference) {
  return ReferenceTensors({{"0000:reference", reference}}).closest(output);
}

TEST(ReferenceTensorsTest, ReadsEveryLayout) {
  // Two channels of three rows and two columns.
  const Tensor nchw = filled({1, 2, 3, 2}, 1);
  EXPECT_EQ(match_of(nchw, nchw).wrong, 0U);
  EXPECT_EQ(match_of(nchw, nchw).layout, "as it is");

  const auto value = [](int c, int pixel) { return static_cast<float>(1 + 6 * c + pixel); };
  Tensor nhwc = Tensor::empty({1, 3, 2, 2}, {kDLFloat, 32, 1});
  for (int pixel = 0; pixel < 6; ++pixel) {
    for (int c = 0; c < 2; ++c) {
      nhwc.elements<float>()[static_cast<std::size_t>(2 * pixel + c)] = value(c, pixel);
    }
  }
  EXPECT_EQ(match_of(nhwc, nchw).wrong, 0U);
  EXPECT_EQ(match_of(nhwc, nchw).layout, "NHWC as NCHW");

  // Four channels in blocks of two: [1, 2, 3, 2, 2].
  const Tensor four = filled({1, 4, 3, 2}, 1);
  Tensor blocked = Tensor::empty({1, 2, 3, 2, 2}, {kDLFloat, 32, 1});
  std::size_t at = 0;
  for (int outer = 0; outer < 2; ++outer) {
    for (int pixel = 0; pixel < 6; ++pixel) {
      for (int inner = 0; inner < 2; ++inner) {
        blocked.elements<float>()[at++] = value(2 * outer + inner, pixel);
      }
    }
  }
  EXPECT_EQ(match_of(blocked, four).wrong, 0U);
  EXPECT_EQ(match_of(blocked, four).layout, "NCHWc as NCHW");
}

// What compile_model makes of 7 channels for registers of 4: an eighth one behind.
TEST(ReferenceTensorsTest, LooksPastChannelsThatWereAdded) {
  const Tensor reference = filled({1, 7, 3, 2}, 1);
  Tensor nchw = zeros({1, 8, 3, 2});
  Tensor nhwc = zeros({1, 3, 2, 8});
  Tensor blocked = zeros({1, 2, 3, 2, 4});
  for (std::size_t c = 0; c < 7; ++c) {
    for (std::size_t pixel = 0; pixel < 6; ++pixel) {
      const float value = static_cast<float>(1 + 6 * c + pixel);
      nchw.elements<float>()[6 * c + pixel] = value;
      nhwc.elements<float>()[8 * pixel + c] = value;
      blocked.elements<float>()[(c / 4 * 6 + pixel) * 4 + c % 4] = value;
    }
  }
  EXPECT_EQ(match_of(nchw, reference).wrong, 0U);
  EXPECT_EQ(match_of(nhwc, reference).layout, "NHWC as NCHW");
  EXPECT_EQ(match_of(nhwc, reference).wrong, 0U);
  EXPECT_EQ(match_of(blocked, reference).layout, "NCHWc as NCHW");
  EXPECT_EQ(match_of(blocked, reference).wrong, 0U);
  blocked.elements<float>()[4] += 1;
  EXPECT_EQ(match_of(blocked, reference).wrong, 1U);
  // One of six is more than is ever added, and other pixels are no channels.
  EXPECT_EQ(match_of(nchw, filled({1, 6, 3, 2}, 1)).tensor, "");
  EXPECT_EQ(match_of(nchw, filled({1, 7, 2, 3}, 1)).tensor, "");
  EXPECT_EQ(match_of(filled({8}, 1), filled({7}, 1)).tensor, "");
}

TEST(ReferenceTensorsTest, MeasuresTheClosestOne) {
  const Tensor right = filled({2, 3}, 10);
  Tensor wrong = right.clone();
  wrong.elements<float>()[4] += 3;
  const ReferenceTensors references(
      {{"far", filled({6}, 50)}, {"near", right}, {"larger", filled({7}, 10)}});
  const ReferenceMatch match = references.closest(wrong);
  EXPECT_EQ(match.tensor, "near");
  EXPECT_TRUE(has_elements(match.shape, {2, 3}));
  EXPECT_EQ(match.wrong, 1U);
  EXPECT_EQ(match.first_wrong, 4U);
  EXPECT_EQ(match.expected, 14);
  EXPECT_EQ(match.actual, 17);
  EXPECT_EQ(match.largest_error, 3);
  EXPECT_NEAR(match.relative_error(), 0.2, 1e-9);
}

TEST(ReferenceTensorsTest, KnowsAFactorForEachChannel) {
  const Tensor reference = filled({1, 2, 2, 2}, 1);
  Tensor scaled = reference.clone();
  for (std::size_t i = 0; i < 8; ++i) scaled.elements<float>()[i] *= i < 4 ? 0.5F : 3.0F;
  EXPECT_TRUE(match_of(scaled, reference).scaled);
  EXPECT_FALSE(match_of(reference, reference).scaled);
  scaled.elements<float>()[6] += 0.1F;
  EXPECT_FALSE(match_of(scaled, reference).scaled);
  // Nothing tells factors from errors where a channel is one value, or there are no channels.
  EXPECT_FALSE(match_of(filled({1, 8, 1, 1}, 2), filled({1, 8, 1, 1}, 1)).scaled);
  EXPECT_FALSE(match_of(filled({8}, 2), filled({8}, 1)).scaled);
}

TEST(ReferenceTensorsTest, NanIsNotRight) {
  Tensor wrong = filled({4}, 1);
  wrong.elements<float>()[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(match_of(wrong, filled({4}, 1)).wrong, 1U);
}

TEST(ReferenceTensorsTest, OnlyFloat32OfTheSameSizeCounts) {
  EXPECT_EQ(match_of(filled({5}, 0), filled({4}, 0)).tensor, "");
  EXPECT_EQ(match_of(Tensor::empty({4}, {kDLInt, 32, 1}), filled({4}, 0)).tensor, "");
  EXPECT_EQ(ReferenceTensors({{"ints", Tensor::empty({4}, {kDLInt, 32, 1})}}).size(), 0U);
}

// A node "n2" that reads other nodes, each with one output of its own name.
NodeInfo node(const std::string& name, const std::vector<std::string>& reads) {
  NodeInfo info;
  info.name = name;
  for (const std::string& input : reads) info.inputs.push_back({input, {10}, {kDLFloat, 32, 1}});
  info.outputs.push_back({name, {10}, {kDLFloat, 32, 1}});
  return info;
}

// A match whose error is that share of the largest value, in so many of ten elements.
ReferenceMatch match(double error, std::size_t wrong = 10) {
  ReferenceMatch result;
  result.tensor = "some";
  result.scale = 1;
  result.largest_error = error;
  result.nonzero = 10;
  result.nonzero_right = error <= 2e-5 ? 10 : 10 - wrong;
  result.wrong = 10 - result.nonzero_right;
  return result;
}

const ReferenceMatch kRight = match(1e-7);
const ReferenceMatch kWrong = match(0.5);
const ReferenceMatch kNone{};

const std::vector<NodeInfo> kChain{node("a", {"data"}), node("b", {"a", "p0"}), node("c", {"b"}),
                                   node("d", {"c"})};

TEST(FindDepartureTest, NothingDeparts) {
  EXPECT_FALSE(find_departure(kChain, {kRight, kRight, kRight, kRight}).has_value());
}

TEST(FindDepartureTest, TheFirstWrongNodeDeparts) {
  const auto found = find_departure(kChain, {kRight, kWrong, kWrong, kWrong});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node, 1U);
  EXPECT_THAT(found->suspects, IsEmpty());
}

TEST(FindDepartureTest, ANodeWithoutCounterpartIsExcusedByItsReader) {
  const auto found = find_departure(kChain, {kRight, kWrong, kRight, kWrong});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node, 3U);
}

TEST(FindDepartureTest, ANodeThatIsMeantToBeATensorIsNot) {
  // Two of ten values are wrong, which a pooling node behind it may hide.
  const auto found = find_departure(kChain, {kRight, match(0.5, 2), kRight, kRight});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node, 1U);
}

TEST(FindDepartureTest, UnmatchedNodesBeforeItAreSuspects) {
  const auto found = find_departure(kChain, {kRight, kNone, kNone, kWrong});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node, 3U);
  EXPECT_TRUE(has_elements(found->suspects, {1U, 2U}));
}

TEST(FindDepartureTest, AScaledOutputIsExcusedButSuspect) {
  ReferenceMatch scaled = kWrong;
  scaled.scaled = true;
  const auto found = find_departure(kChain, {kRight, scaled, kWrong, kWrong});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node, 2U);
  EXPECT_TRUE(has_elements(found->suspects, {1U}));
}

TEST(FindDepartureTest, OtherBranchesAreNone) {
  // a feeds b, which is padding for d, and c, which is right.
  const std::vector<NodeInfo> fork{node("a", {"data"}), node("b", {"a"}), node("c", {"a"}),
                                   node("d", {"b", "c"})};
  const auto found = find_departure(fork, {kNone, kNone, kRight, kWrong});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node, 3U);
  // Whether a is wrong cannot be told from c alone, since it leads to d over b, too.
  EXPECT_TRUE(has_elements(found->suspects, {0U, 1U}));
}

TEST(FindDepartureTest, RoundingThatGrowsIsNoDeparture) {
  EXPECT_FALSE(
      find_departure(kChain, {match(1e-6), match(8e-6), match(9e-5), match(1e-3)}).has_value());
  const auto found = find_departure(kChain, {match(1e-6), match(3e-5), match(3e-5), match(3e-5)});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node, 1U);
}

TEST(LargestGrowthTest, NamesTheLargestStep) {
  const auto found = largest_growth({match(1e-7), match(2e-7), match(1.5e-5), match(1.6e-5)});
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->node, 2U);
  EXPECT_EQ(found->before, 2e-7);
  EXPECT_EQ(found->after, 1.5e-5);
  EXPECT_FALSE(largest_growth({kNone, kWrong}).has_value());
}

}  // namespace
}  // namespace run_model
