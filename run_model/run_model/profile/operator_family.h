// What kind of work a compiled function does, told by its name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace run_model {

enum class OperatorFamily {
  kConv2d,
  kConv2dGrouped,
  kConv2dDepthwise,
  kConv2dTranspose,
  kConvOther,  // convolutions of one or three dimensions, deformable, bit-serial
  kDense,
  kBatchMatmul,
  kPool,
  kSoftmax,
  kNormalize,
  kReduce,  // sums, means, extremes, sorting
  kResize,
  kRearrange,  // concatenates, splits, transposes, slices, gathers, pads
  kLayoutTransform,
  kElementwise,
  kCopy,
  kView,  // another shape for the same bytes: nothing is done
  kUnknown,
};

inline constexpr std::size_t kOperatorFamilies =
    static_cast<std::size_t>(OperatorFamily::kUnknown) + 1;

// "conv2d", "layout_transform" … for machines.
std::string_view operator_family_key(OperatorFamily family);

// "conv2d depthwise", "layout transform" … for people.
std::string_view operator_family_title(OperatorFamily family);

// The operators that a function computes, as its name gives them.
struct FunctionName {
  std::vector<std::string_view> operators;  // parts of the name: "nn_conv2d", "add", "nn_relu"
  bool complete = false;  // false: the name was cut by the compiler, or has parts that are no
                          // known operators
};

// TVM names a function after the operators that it has fused: "tvmgen_default_fused_nn_dense_add_3"
// (the first part since 0.8; the number makes it unique). Names of more than 80 characters are cut
// and end with a hash. A layer of this project's kernels is one operator,
// "run_model_conv2d_direct". The result refers to `function`.
FunctionName parse_function_name(std::string_view function);

// The family of the operator that decides the function's cost; kUnknown where the name does not
// tell it. Which of plain, grouped and depthwise a convolution is, is up to the shapes: kConv2d
// here.
OperatorFamily family_of(const FunctionName& name);

// Whether one of the operators reads only part of what it is given (take, strided_slice …), so that
// the size of its inputs says nothing about the bytes that it reads.
bool reads_partially(const FunctionName& name);

}  // namespace run_model
