// How many arithmetic operations a node does, told by its shapes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <run_model/debug_executor.h>
#include "run_model/run_model/profile/operator_family.h"

namespace run_model {

// Multiplications and additions each count as one operation, so that a multiply-add counts as two.
// Additions of a bias, activation functions and what else is fused to the main operator do not
// count.
struct OperationCount {
  std::uint64_t operations = 0;
  std::string_view rule;  // how they were counted, in a few words
};

// What the shapes tell about a node.
struct Work {
  OperatorFamily family = OperatorFamily::kUnknown;  // family_of, refined
  std::optional<OperationCount> operations;          // nothing where the shapes do not tell it
};

// - convolution: every weight is used once for each output position and picture:
//   2 x weights x N x OH x OW, in whatever layout the weights are; thus right for grouped and
//   depthwise convolutions as well. Products with the zeros of the padding count. Channels that
//   the compiler has added to fill a vector count: the function computes them.
// - transposed convolution: every weight once for each input position: 2 x weights x N x IH x IW.
//   Products that fall outside of the output count.
// - Winograd's convolution: the operations of the direct convolution that it replaces (3x3).
// - dense and matrix product of M x K and K x N: 2 x M x K x N, times the batch.
// - global pooling: one operation for each element of the input. The window of other pooling is not
//   in the graph: unknown.
// The functions do not say which of their inputs are the weights. They are found by shapes that
// fit, among the parameters if there are any (`is_parameter`, one for each input); where several
// fit and give different counts, the count is unknown.
Work work_of(const FunctionName& name, const NodeInfo& node, const std::vector<bool>& is_parameter);

// What the artifact itself says (GraphNode::multiply_adds), which shapes of transformed weights and
// layers fused into one do not tell: nothing where it is no decimal number above 0, or too large.
// Of the layer as it is defined, thus without the channels that were added to fill vectors, and of
// the direct convolution where Winograd's is computed.
std::optional<OperationCount> stated_operations(std::string_view multiply_adds);

}  // namespace run_model
