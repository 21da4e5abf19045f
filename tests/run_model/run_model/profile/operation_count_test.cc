#include "run_model/run_model/profile/operation_count.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace run_model {
namespace {

using Shape = std::vector<std::int64_t>;

TensorInfo tensor(Shape shape) { return {"t", std::move(shape), {kDLFloat, 32, 1}}; }

// `parameters` lists the inputs that are.
Work work(const std::string& function, const std::vector<Shape>& inputs, Shape output,
          const std::vector<std::size_t>& parameters = {1}) {
  NodeInfo node;
  node.function = function;
  for (const Shape& shape : inputs) node.inputs.push_back(tensor(shape));
  node.outputs.push_back(tensor(std::move(output)));
  std::vector<bool> is_parameter(inputs.size());
  for (const std::size_t i : parameters) is_parameter[i] = true;
  return work_of(parse_function_name(function), node, is_parameter);
}

void expect(const Work& work, OperatorFamily family, std::uint64_t multiply_adds) {
  EXPECT_EQ(work.family, family);
  ASSERT_TRUE(work.operations);
  EXPECT_EQ(work.operations->operations, 2 * multiply_adds);
}

// The numbers below are N x OH x OW x OC x KH x KW x IC / groups.

TEST(OperationCountTest, ConvolutionNchw) {
  expect(work("fused_nn_conv2d_add", {{1, 3, 224, 224}, {64, 3, 7, 7}, {1, 64, 1, 1}},
              {1, 64, 112, 112}, {1, 2}),
         OperatorFamily::kConv2d, 112ull * 112 * 64 * 7 * 7 * 3);
}

TEST(OperationCountTest, ConvolutionWithPackedWeights) {  // OIHW8o
  expect(work("fused_nn_conv2d", {{2, 16, 10, 10}, {4, 16, 3, 3, 8}}, {2, 32, 10, 10}),
         OperatorFamily::kConv2d, 2ull * 10 * 10 * 32 * 3 * 3 * 16);
}

TEST(OperationCountTest, ConvolutionNhwc) {
  expect(work("fused_nn_conv2d_add_clip", {{1, 15, 15, 4}, {3, 3, 4, 8}, {1, 1, 1, 8}},
              {1, 7, 7, 8}, {1, 2}),
         OperatorFamily::kConv2d, 7ull * 7 * 8 * 3 * 3 * 4);
  expect(
      work("fused_nn_conv2d_add", {{1, 7, 7, 8}, {3, 3, 8, 1}, {1, 1, 1, 8}}, {1, 7, 7, 8}, {1, 2}),
      OperatorFamily::kConv2dDepthwise, 7ull * 7 * 8 * 3 * 3);
}

TEST(OperationCountTest, ConvolutionNchwc) {
  expect(work("fused_nn_contrib_conv2d_NCHWc_add_nn_relu",
              {{1, 4, 56, 56, 16}, {8, 4, 3, 3, 16, 16}, {1, 8, 1, 1, 16}}, {1, 8, 28, 28, 16},
              {1, 2}),
         OperatorFamily::kConv2d, 28ull * 28 * 128 * 3 * 3 * 64);
  expect(
      work("fused_nn_contrib_depthwise_conv2d_NCHWc_add",
           {{1, 2, 56, 56, 15}, {2, 1, 3, 3, 1, 15}, {1, 2, 1, 1, 15}}, {1, 2, 28, 28, 15}, {1, 2}),
      OperatorFamily::kConv2dDepthwise, 28ull * 28 * 30 * 3 * 3);
  // Eight-bit: OIHW1i16o4i.
  expect(work("fused_nn_contrib_conv2d_NCHWc", {{1, 1, 18, 18, 4}, {1, 1, 3, 3, 1, 16, 4}},
              {1, 1, 16, 16, 16}),
         OperatorFamily::kConv2d, 16ull * 16 * 16 * 3 * 3 * 4);
}

TEST(OperationCountTest, GroupedConvolution) {
  // ShuffleNet: three groups, then a residual connection with other numbers of channels.
  expect(work("fused_nn_conv2d_multiply_add_add_nn_relu",
              {{1, 30, 28, 28}, {120, 10, 1, 1}, {1, 120, 1, 1}, {1, 120, 1, 1}, {1, 120, 28, 28}},
              {1, 120, 28, 28}, {1, 2, 3}),
         OperatorFamily::kConv2dGrouped, 28ull * 28 * 120 * 10);
  expect(work("fused_nn_conv2d_add_clip", {{1, 32, 8, 8}, {32, 1, 3, 3}, {1, 32, 1, 1}},
              {1, 32, 8, 8}, {1, 2}),
         OperatorFamily::kConv2dDepthwise, 8ull * 8 * 32 * 3 * 3);
  // One input channel: nothing to group.
  expect(work("fused_nn_conv2d", {{1, 1, 8, 8}, {4, 1, 3, 3}}, {1, 4, 8, 8}),
         OperatorFamily::kConv2d, 8ull * 8 * 4 * 3 * 3);
}

TEST(OperationCountTest, FindsTheWeightsBehindAResidual) {
  expect(work("fused_nn_conv2d_add", {{1, 7, 7, 112}, {1, 7, 7, 56}, {3, 3, 56, 112}},
              {1, 7, 7, 112}, {2}),
         OperatorFamily::kConv2d, 7ull * 7 * 112 * 3 * 3 * 56);
}

TEST(OperationCountTest, ConvolutionsOfOneAndThreeDimensions) {
  expect(work("fused_nn_conv1d", {{1, 8, 100}, {16, 8, 5}}, {1, 16, 100}),
         OperatorFamily::kConvOther, 100ull * 16 * 5 * 8);
  expect(work("fused_nn_conv3d", {{1, 2, 8, 9, 10}, {4, 2, 3, 3, 3}}, {1, 4, 8, 9, 10}),
         OperatorFamily::kConvOther, 8ull * 9 * 10 * 4 * 27 * 2);
}

TEST(OperationCountTest, TransposedConvolution) {
  // Every input value meets every weight of its channel.
  expect(work("fused_nn_conv2d_transpose_nn_relu", {{1, 6, 7, 9}, {6, 4, 4, 4}}, {1, 4, 14, 18}),
         OperatorFamily::kConv2dTranspose, 7ull * 9 * 6 * 4 * 4 * 4);
}

TEST(OperationCountTest, WinogradCountsTheDirectConvolution) {
  const Work nchw =
      work("fused_nn_contrib_conv2d_winograd_without_weight_transform_add",
           {{1, 64, 56, 56}, {6, 6, 16, 64, 8}, {1, 128, 1, 1}}, {1, 128, 56, 56}, {1, 2});
  expect(nchw, OperatorFamily::kConv2d, 56ull * 56 * 128 * 3 * 3 * 64);
  EXPECT_EQ(nchw.operations->rule, "of the direct 3x3 convolution");
  expect(work("fused_nn_contrib_conv2d_winograd_without_weight_transform",
              {{1, 56, 56, 64}, {6, 6, 64, 64}}, {1, 56, 56, 64}),
         OperatorFamily::kConv2d, 56ull * 56 * 64 * 3 * 3 * 64);
}

TEST(OperationCountTest, WeightsInALayoutOfAnAutomaticScheduler) {
  expect(work("fused_nn_conv2d_add_nn_relu",
              {{1, 56, 56, 64}, {2, 4, 3, 3, 16, 8, 4}, {1, 1, 1, 64}}, {1, 56, 56, 64}, {1, 2}),
         OperatorFamily::kConv2d, 56ull * 56 * 64 * 9 * 64);
}

TEST(OperationCountTest, Dense) {
  expect(work("fused_nn_dense_add", {{2, 512}, {1000, 512}, {1, 1000}}, {2, 1000}, {1, 2}),
         OperatorFamily::kDense, 2ull * 512 * 1000);
  expect(work("fused_nn_contrib_dense_pack_add", {{1, 512}, {40, 512, 25}, {1, 1000}}, {1, 1000},
              {1, 2}),
         OperatorFamily::kDense, 512ull * 1000);
  expect(work("fused_nn_matmul_add", {{3, 512}, {512, 1000}, {1, 1000}}, {3, 1000}, {1, 2}),
         OperatorFamily::kDense, 3ull * 512 * 1000);
  // No parameter at all: both are inputs of the model.
  expect(work("fused_nn_dense", {{2, 5}, {7, 5}}, {2, 7}, {}), OperatorFamily::kDense,
         2ull * 5 * 7);
}

TEST(OperationCountTest, BatchMatmul) {
  expect(work("fused_nn_batch_matmul_multiply_add", {{4, 12, 8}, {4, 10, 8}, {1, 10}}, {4, 12, 10},
              {}),
         OperatorFamily::kBatchMatmul, 4ull * 12 * 10 * 8);
  expect(work("fused_nn_batch_matmul", {{4, 12, 12}, {4, 8, 12}}, {4, 12, 8}, {}),
         OperatorFamily::kBatchMatmul, 4ull * 12 * 12 * 8);
  // A matrix by its own transpose.
  expect(work("fused_nn_batch_matmul", {{4, 12, 8}}, {4, 12, 12}, {}), OperatorFamily::kBatchMatmul,
         4ull * 12 * 12 * 8);
}

TEST(OperationCountTest, PoolingWhereTheWindowIsKnown) {
  const Work global =
      work("fused_nn_global_avg_pool2d", {{1, 32, 7, 7, 16}}, {1, 32, 1, 1, 16}, {});
  ASSERT_TRUE(global.operations);
  EXPECT_EQ(global.operations->operations, 32u * 7 * 7 * 16);
  EXPECT_TRUE(work("fused_nn_adaptive_avg_pool2d", {{1, 5, 18, 15}}, {1, 5, 1, 1}, {}).operations);
  EXPECT_FALSE(work("fused_nn_adaptive_avg_pool2d", {{1, 5, 18, 15}}, {1, 5, 3, 4}, {}).operations);
  EXPECT_FALSE(work("fused_nn_max_pool2d", {{1, 5, 18, 15}}, {1, 5, 9, 8}, {}).operations);
}

TEST(OperationCountTest, SaysNothingRatherThanGuess) {
  // From 2 to 4 channels in NCHW or from 3 to 6 in NHWC: both fit, and give other counts.
  EXPECT_FALSE(work("fused_nn_conv2d", {{1, 2, 7, 3}, {4, 2, 3, 6}}, {1, 4, 5, 6}).operations);
  EXPECT_FALSE(work("fused_nn_conv2d", {{1, 3, 8, 8}, {5, 3, 3, 3}}, {1, 4, 8, 8}).operations);
  EXPECT_FALSE(work("fused_nn_contrib_conv2d_gemm_without_weight_transform",
                    {{1, 8, 8, 16}, {4, 4, 4, 16}}, {1, 8, 8, 16})
                   .operations);
  EXPECT_FALSE(work("fused_nn_bitserial_conv2d", {{1, 8, 10, 10}, {16, 8, 3, 3}}, {1, 16, 10, 10})
                   .operations);
  EXPECT_FALSE(work("fused_nn_dense", {{2, 5}, {7, 6}}, {2, 7}).operations);
  // The bias has the shape of weights of a depthwise 1x1 convolution.
  EXPECT_FALSE(work("fused_nn_conv2d_add", {{1, 9, 9, 4}, {3, 3, 2, 7, 4}, {1, 1, 1, 8}},
                    {1, 9, 9, 8}, {1, 2})
                   .operations);
  EXPECT_FALSE(work("my_conv2d", {{1, 3, 8, 8}, {4, 3, 3, 3}}, {1, 4, 8, 8}).operations);
}

TEST(OperationCountTest, SurvivesShapesThatMakeNoSense) {
  const std::int64_t huge = std::int64_t{1} << 62;
  for (const char* function :
       {"fused_nn_conv2d", "fused_nn_contrib_conv2d_NCHWc", "fused_nn_conv2d_transpose",
        "fused_nn_contrib_conv2d_winograd_without_weight_transform", "fused_nn_dense",
        "fused_nn_batch_matmul", "fused_nn_global_avg_pool2d", "fused_nn_contrib_dense_pack"}) {
    for (const Shape& odd :
         {Shape{}, Shape{0}, Shape{1}, Shape{0, huge, 4, 4}, Shape{1, 1, 1, 1, 0}, Shape{huge},
          Shape{1, huge, 1}, Shape{1, 1, 1, 1, 1, 1, 1}}) {
      for (const Shape& out : {Shape{}, Shape{0, 0}, Shape{1, 4, 4, 4}, Shape{4, 4, 4}, odd}) {
        EXPECT_NO_FATAL_FAILURE(work(function, {odd, odd}, out)) << function;
        EXPECT_NO_FATAL_FAILURE(work(function, {odd}, out, {})) << function;
        EXPECT_NO_FATAL_FAILURE(work(function, {}, out, {})) << function;
      }
    }
  }
}

TEST(OperationCountTest, DoesNotOverflow) {
  const std::int64_t large = std::int64_t{1} << 31;
  EXPECT_FALSE(
      work("fused_nn_dense", {{large, large / 2}, {large, large / 2}}, {large, large}).operations);
}

TEST(OperationCountTest, TakesWhatTheArtifactStates) {
  const auto stated = stated_operations("115605504");
  ASSERT_TRUE(stated);
  EXPECT_EQ(stated->operations, 231211008u);
  EXPECT_EQ(stated->rule, "2 x multiply-adds of the layer's definition");
  ASSERT_TRUE(stated_operations("9223372036854775807"));  // 2^63 - 1
  EXPECT_EQ(stated_operations("9223372036854775807")->operations, 18446744073709551614u);
}

TEST(OperationCountTest, TakesNoStatementThatIsNoNumber) {
  for (const char* text : {"", "0", "-1", "+1", " 1", "1 ", "1.5", "1e6", "0x10", "nan", "many",
                           "1,000", "9223372036854775808", "18446744073709551615",
                           "18446744073709551616", "100000000000000000000000000000000000000000"}) {
    EXPECT_FALSE(stated_operations(text)) << text;
  }
  EXPECT_FALSE(stated_operations(std::string_view("1\0", 2)));
}

// Their weights are in layouts of their own: shapes say nothing, or would say something wrong.
TEST(OperationCountTest, CountsKernelsOfThisProjectByNothingElse) {
  const Work own = work("tvmgen_default_fused_run_model_conv2d_direct_4",
                        {{1, 4, 56, 56, 16}, {8, 4, 3, 3, 16, 16}, {1, 8, 1, 1, 16}},
                        {1, 8, 28, 28, 16}, {1, 2});
  EXPECT_EQ(own.family, OperatorFamily::kConv2d);
  EXPECT_FALSE(own.operations);
  const Work dense = work("fused_run_model_dense_2", {{2, 512}, {1000, 512}}, {2, 1000});
  EXPECT_EQ(dense.family, OperatorFamily::kDense);
  EXPECT_FALSE(dense.operations);
}

}  // namespace
}  // namespace run_model
