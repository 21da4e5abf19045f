#include "run_model/run_model/profile/operator_family.h"
#include "tests/has_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace run_model {
namespace {

using ::testing::IsEmpty;

OperatorFamily family(std::string_view function) {
  return family_of(parse_function_name(function));
}

TEST(OperatorFamilyTest, ReadsTheOperatorsOfAName) {
  const FunctionName name =
      parse_function_name("tvmgen_default_fused_nn_contrib_conv2d_NCHWc_add_nn_relu_12");
  EXPECT_TRUE(has_elements(name.operators, {"nn_contrib_conv2d_NCHWc", "add", "nn_relu"}));
  EXPECT_TRUE(name.complete);
}

TEST(OperatorFamilyTest, ReadsNamesOfOldReleases) {
  const FunctionName name = parse_function_name("fused_nn_dense_add");
  EXPECT_TRUE(has_elements(name.operators, {"nn_dense", "add"}));
  EXPECT_TRUE(name.complete);
}

TEST(OperatorFamilyTest, TakesTheLongestOperator) {
  EXPECT_TRUE(has_elements(parse_function_name("fused_floor_divide_floor_nn_log_softmax").operators,
                           {"floor_divide", "floor", "nn_log_softmax"}));
  EXPECT_TRUE(has_elements(parse_function_name("fused_nn_conv2d_transpose_log2_1").operators,
                           {"nn_conv2d_transpose", "log2"}));
  EXPECT_TRUE(has_elements(parse_function_name("fused_reshape_transpose_reshape").operators,
                           {"reshape", "transpose", "reshape"}));
}

TEST(OperatorFamilyTest, KnowsNamesThatTheCompilerCut) {
  // Real names of 0.18 (sixteen hexadecimal digits) and 0.10 (decimal digits).
  const FunctionName name = parse_function_name(
      "tvmgen_default_fused_cast_multiply_add_multiply_add_nn_relu_multiply_round_clip_cast_add_"
      "cast_l_5d7904ad13403215_");
  EXPECT_FALSE(name.complete);
  EXPECT_EQ(name.operators.back(), "cast");
  EXPECT_EQ(family_of(name), OperatorFamily::kUnknown);
  EXPECT_EQ(family("tvmgen_default_fused_nn_conv2d_add_multiply_add_round_clip_cast_add_c_"
                   "18365069616903487330__1"),
            OperatorFamily::kConv2d);
}

TEST(OperatorFamilyTest, IsUnknownWhereTheNameDoesNotTell) {
  EXPECT_EQ(family("tvmgen_default_dnnl_main_0"), OperatorFamily::kUnknown);
  EXPECT_EQ(family("my_kernel"), OperatorFamily::kUnknown);
  EXPECT_EQ(family(""), OperatorFamily::kUnknown);
  EXPECT_EQ(family("fused_"), OperatorFamily::kUnknown);
  EXPECT_EQ(family("tvmgen_"), OperatorFamily::kUnknown);
  EXPECT_EQ(family("fused_add_custom_thing"), OperatorFamily::kUnknown);
  EXPECT_THAT(parse_function_name("add").operators, IsEmpty());
}

TEST(OperatorFamilyTest, TheMainOperatorDecides) {
  EXPECT_EQ(family("fused_nn_contrib_depthwise_conv2d_NCHWc_add_clip"),
            OperatorFamily::kConv2dDepthwise);
  EXPECT_EQ(family("fused_nn_max_pool2d_multiply_round_clip_cast"), OperatorFamily::kPool);
  EXPECT_EQ(family("fused_layout_transform_reshape_transpose_reshape_split"),
            OperatorFamily::kRearrange);
  EXPECT_EQ(family("fused_layout_transform_nn_batch_flatten_5"), OperatorFamily::kLayoutTransform);
  EXPECT_EQ(family("fused_multiply_add_reshape"), OperatorFamily::kElementwise);
  EXPECT_EQ(family("fused_reshape"), OperatorFamily::kCopy);
  EXPECT_EQ(family("fused_subtract_exp_sum"), OperatorFamily::kReduce);
  EXPECT_EQ(family("fused_nn_upsampling"), OperatorFamily::kResize);
  EXPECT_EQ(family("fused_nn_softmax_6"), OperatorFamily::kSoftmax);
  EXPECT_EQ(family("fused_nn_batch_matmul_1"), OperatorFamily::kBatchMatmul);
}

TEST(OperatorFamilyTest, KnowsKernelsOfThisProject) {
  const FunctionName name =
      parse_function_name("tvmgen_default_fused_run_model_conv2d_winograd4_2_1");
  EXPECT_TRUE(has_elements(name.operators, {"run_model_conv2d_winograd4"}));
  EXPECT_TRUE(name.complete);
  const std::pair<const char*, OperatorFamily> kinds[] = {
      {"conv2d_planar_0", OperatorFamily::kConv2d},
      {"conv2d_pointwise", OperatorFamily::kConv2d},
      {"conv2d_direct_4", OperatorFamily::kConv2d},
      {"conv2d_winograd_3", OperatorFamily::kConv2d},
      {"conv2d_grouped_1", OperatorFamily::kConv2dGrouped},
      {"conv2d_depthwise_12", OperatorFamily::kConv2dDepthwise},
      {"conv2d_expand_depthwise_project_2", OperatorFamily::kConv2d},
      {"conv2d_depthwise_project_1", OperatorFamily::kConv2d},
      {"inverted_residual", OperatorFamily::kConv2d},
      {"max_pool2d_1", OperatorFamily::kPool},
      {"average_pool2d", OperatorFamily::kPool},
      {"avg_pool2d_3", OperatorFamily::kPool},
      {"global_avg_pool2d_20", OperatorFamily::kPool},
      {"dense_7", OperatorFamily::kDense},
      {"conv2d_int8_3", OperatorFamily::kConv2d},
      {"depthwise_int8_1", OperatorFamily::kConv2dDepthwise},
      {"max_pool2d_int8", OperatorFamily::kPool},
      {"int8_conv2d_pointwise_3", OperatorFamily::kConv2d},
      {"int8_conv2d_depthwise", OperatorFamily::kConv2dDepthwise},
      {"int8_max_pool2d", OperatorFamily::kPool},
      {"int8_dense_1", OperatorFamily::kDense},
      {"quantize", OperatorFamily::kElementwise},
      {"dequantize_2", OperatorFamily::kElementwise},
      {"matmul_4", OperatorFamily::kBatchMatmul},
      {"lstm_1", OperatorFamily::kDense},
      {"gru", OperatorFamily::kDense},
      {"rows_22", OperatorFamily::kReduce},
      {"resample_3", OperatorFamily::kResize},
      {"gather_1", OperatorFamily::kRearrange},
      {"elementwise_5", OperatorFamily::kElementwise},
      {"add_int8_1", OperatorFamily::kElementwise},
      {"conv2d_planar_max_pool2d", OperatorFamily::kConv2d},
      {"conv2d_depthwise_f16_2", OperatorFamily::kConv2dDepthwise},
      {"cast_to_float16_3", OperatorFamily::kElementwise},
      {"map_int8", OperatorFamily::kElementwise},
      {"something_new_2", OperatorFamily::kUnknown},
      {"", OperatorFamily::kUnknown},
      {"5", OperatorFamily::kUnknown},
  };
  for (const auto& [kind, expected] : kinds) {
    EXPECT_EQ(family(std::string("tvmgen_default_fused_run_model_") + kind), expected) << kind;
    EXPECT_EQ(family(std::string("fused_run_model_") + kind), expected) << kind;
  }
  // Not ours, whatever it is.
  EXPECT_EQ(family("run_model_conv2d_direct"), OperatorFamily::kUnknown);
}

TEST(OperatorFamilyTest, KnowsWhatReadsOnlyAPart) {
  EXPECT_TRUE(reads_partially(parse_function_name("fused_take")));
  EXPECT_TRUE(reads_partially(parse_function_name("fused_layout_transform_strided_slice_cast")));
  EXPECT_FALSE(reads_partially(parse_function_name("fused_split")));
}

TEST(OperatorFamilyTest, EveryFamilyHasNames) {
  for (std::size_t i = 0; i < kOperatorFamilies; ++i) {
    EXPECT_NE(operator_family_key(static_cast<OperatorFamily>(i)), "") << i;
    EXPECT_NE(operator_family_title(static_cast<OperatorFamily>(i)), "") << i;
  }
  EXPECT_EQ(operator_family_key(OperatorFamily::kUnknown), "unknown");
}

}  // namespace
}  // namespace run_model
