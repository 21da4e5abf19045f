#include "run_model/run_model/profile/operation_count.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>
#include <string_view>

#include "base/text.h"

namespace run_model {
namespace {

using Shape = std::span<const std::int64_t>;
using Count = std::optional<std::uint64_t>;

// Nothing on overflow and for no elements at all.
Count product(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t result = 1;
  for (const std::uint64_t factor : factors) {
    if (factor == 0 || __builtin_mul_overflow(result, factor, &result)) return std::nullopt;
  }
  return result;
}

std::uint64_t elements(Shape shape) {
  std::uint64_t result = 1;
  for (const std::int64_t dimension : shape) result *= static_cast<std::uint64_t>(dimension);
  return result;  // of a tensor that exists: fits
}

bool divides(std::int64_t divisor, std::int64_t value) {
  return divisor > 0 && value % divisor == 0;
}

// Where the channels of a tensor are; the batch comes first in all of them.
enum class Channels { kFirst, kLast, kBlocked };  // NCHW, NHWC, NCHWc

std::int64_t channels(Shape shape, Channels where) {
  if (where == Channels::kFirst) return shape[1];
  return where == Channels::kLast ? shape.back() : shape[1] * shape.back();
}

// Pictures times positions in each.
std::uint64_t positions(Shape shape, Channels where) {
  return elements(shape) / static_cast<std::uint64_t>(channels(shape, where));
}

// A way to understand the inputs of a convolution.
struct Reading {
  std::uint64_t weights = 0;    // elements
  std::uint64_t positions = 0;  // at which each of them is used
  std::int64_t groups = 1;
  std::int64_t data_channels = 1;
  bool weak = false;  // one weight for each output channel: may as well be a bias
};

// Input channels of a group that weights of that shape have for so many output channels; 0 where
// the shape is none of weights.
std::int64_t group_channels(Shape weights, Shape out, Channels where, std::int64_t data_channels) {
  const std::size_t rank = out.size();
  if (where == Channels::kBlocked) {
    // OIHW<i>i<o>o; for 8-bit types OIHW<i>i<o>o4i.
    if (weights.size() != 6 && weights.size() != 7) return 0;
    if (weights[0] != out[1] || weights[5] != out[4]) return 0;
    return weights[1] * weights[4] * (weights.size() == 7 ? weights[6] : 1);
  }
  const std::int64_t out_channels = channels(out, where);
  if (where == Channels::kFirst) {
    if (weights.size() == rank && weights[0] == out_channels) return weights[1];  // OIHW
    const bool packed = weights.size() == rank + 1;                               // OIHW<o>o
    return packed && weights[0] * weights[rank] == out_channels ? weights[1] : 0;
  }
  if (weights.size() != rank) return 0;
  if (weights[rank - 2] == data_channels && data_channels > 1 &&
      weights[rank - 2] * weights[rank - 1] == out_channels) {
    return 1;  // HWOI, depthwise
  }
  return weights[rank - 1] == out_channels ? weights[rank - 2] : 0;  // HWIO
}

std::optional<Reading> fit_convolution(Shape data, Shape weights, Shape out, Channels where) {
  if (data.size() != out.size() || data[0] != out[0]) return std::nullopt;
  const std::int64_t in_channels = channels(data, where), out_channels = channels(out, where);
  const std::int64_t of_group = group_channels(weights, out, where, in_channels);
  if (!divides(of_group, in_channels)) return std::nullopt;
  const std::int64_t groups = in_channels / of_group;
  if (!divides(groups, out_channels)) return std::nullopt;
  return Reading{elements(weights), positions(out, where), groups, in_channels,
                 elements(weights) == static_cast<std::uint64_t>(out_channels)};
}

// Weights that auto_scheduler or MetaSchedule have laid out anew: only their number tells.
std::optional<Reading> fit_rewritten(Shape data, Shape weights, Shape out, Channels where) {
  if (data.size() != out.size() || data[0] != out[0] || weights.size() <= out.size() + 1) {
    return std::nullopt;
  }
  const std::int64_t in_channels = channels(data, where), out_channels = channels(out, where);
  const Count pairs =
      product({static_cast<std::uint64_t>(in_channels), static_cast<std::uint64_t>(out_channels)});
  if (!pairs || elements(weights) % *pairs != 0) return std::nullopt;
  return Reading{elements(weights), positions(out, where), 1, in_channels, false};
}

// IOHW or HWOI and the like: each weight is used at each position of the input.
std::optional<Reading> fit_transposed(Shape data, Shape weights, Shape out, Channels where) {
  const std::size_t rank = out.size();
  if (where == Channels::kBlocked || data.size() != rank || weights.size() != rank ||
      data[0] != out[0]) {
    return std::nullopt;
  }
  const std::int64_t in_channels = channels(data, where), out_channels = channels(out, where);
  const std::size_t at = where == Channels::kFirst ? 0 : rank - 2;
  const bool in_first = weights[at] == in_channels && divides(weights[at + 1], out_channels);
  const bool out_first = where == Channels::kLast && weights[at + 1] == in_channels &&
                         divides(weights[at], out_channels);
  if (!in_first && !out_first) return std::nullopt;
  const std::int64_t groups = out_channels / weights[in_first ? at + 1 : at];
  return Reading{elements(weights), positions(data, where), groups, in_channels, false};
}

// Transformed weights of tiles of alpha x alpha (alpha = tile + 2) for kernels of 3x3, the only
// ones that TVM's schedules for CPUs transform.
std::optional<Reading> fit_winograd(Shape data, Shape weights, Shape out, Channels where) {
  if (data.size() != out.size() || data[0] != out[0] || weights.size() < 4) return std::nullopt;
  const std::int64_t in_channels = channels(data, where), out_channels = channels(out, where);
  const Count pairs =
      product({static_cast<std::uint64_t>(in_channels), static_cast<std::uint64_t>(out_channels)});
  if (!pairs || elements(weights) % *pairs != 0) return std::nullopt;
  const std::uint64_t tile = elements(weights) / *pairs;
  if (tile != 16 && tile != 36 && tile != 64) return std::nullopt;
  return Reading{9 * *pairs, positions(out, where), 1, in_channels, false};
}

using Fitter = std::optional<Reading> (*)(Shape, Shape, Shape, Channels);

// The arguments of the main operator come one after the other: the data closest before the weights.
std::optional<Reading> nearest_fit(Fitter fit, const NodeInfo& node, std::size_t weights, Shape out,
                                   Channels where) {
  std::vector<std::size_t> order;
  for (std::size_t i = weights; i > 0; --i) order.push_back(i - 1);
  for (std::size_t i = weights + 1; i < node.inputs.size(); ++i) order.push_back(i);
  for (const std::size_t data : order) {
    if (elements(node.inputs[data].shape) == 0) continue;
    if (auto found = fit(node.inputs[data].shape, node.inputs[weights].shape, out, where)) {
      return found;
    }
  }
  return std::nullopt;
}

// All ways to understand the node's inputs, those with a parameter for weights if there are any.
std::vector<Reading> fits(Fitter fit, const NodeInfo& node, const std::vector<bool>& is_parameter,
                          std::span<const Channels> layouts) {
  const Shape out = node.outputs.front().shape;
  std::vector<Reading> of_parameters, of_others;
  for (std::size_t weights = 0; weights < node.inputs.size(); ++weights) {
    if (elements(node.inputs[weights].shape) == 0) continue;
    for (const Channels where : layouts) {
      const auto found = nearest_fit(fit, node, weights, out, where);
      if (found) (is_parameter[weights] ? of_parameters : of_others).push_back(*found);
    }
  }
  std::vector<Reading> all = of_parameters.empty() ? of_others : of_parameters;
  if (node.inputs.size() > 2) std::erase_if(all, [](const Reading& one) { return one.weak; });
  return all;
}

std::optional<OperationCount> agreed(const std::vector<Count>& counts, std::string_view rule) {
  if (counts.empty() || !counts.front()) return std::nullopt;
  for (const Count& count : counts) {
    if (count != counts.front()) return std::nullopt;
  }
  return OperationCount{*counts.front(), rule};
}

OperatorFamily refined(OperatorFamily family, const std::vector<Reading>& all) {
  if (family != OperatorFamily::kConv2d) return family;
  const auto kind = [](const Reading& fit) {
    if (fit.groups == 1) return OperatorFamily::kConv2d;
    return fit.groups == fit.data_channels ? OperatorFamily::kConv2dDepthwise
                                           : OperatorFamily::kConv2dGrouped;
  };
  const OperatorFamily first = kind(all.front());
  const bool same =
      std::all_of(all.begin(), all.end(), [&](const Reading& fit) { return kind(fit) == first; });
  return same ? first : family;
}

Work convolution(OperatorFamily family, std::string_view anchor, const NodeInfo& node,
                 const std::vector<bool>& is_parameter) {
  static constexpr std::array<Channels, 2> kPlain = {Channels::kFirst, Channels::kLast};
  static constexpr std::array<Channels, 1> kOnlyBlocked = {Channels::kBlocked};
  const std::size_t rank = node.outputs.front().shape.size();
  std::vector<Reading> all;
  std::string_view rule = "2 x weights x output positions";
  if (anchor.ends_with("_NCHWc")) {
    if (rank == 5) all = fits(fit_convolution, node, is_parameter, kOnlyBlocked);
  } else if (anchor == "nn_contrib_conv2d_winograd_without_weight_transform") {
    rule = "of the direct 3x3 convolution";
    all = fits(fit_winograd, node, is_parameter, kPlain);
  } else if (anchor.starts_with("nn_conv") && anchor.ends_with("_transpose")) {
    rule = "2 x weights x input positions";
    all = fits(fit_transposed, node, is_parameter, kPlain);
  } else if (anchor.starts_with("nn_conv") && anchor.ends_with('d')) {  // nn_conv1d, 2d, 3d
    all = fits(fit_convolution, node, is_parameter, kPlain);
    if (all.empty()) all = fits(fit_rewritten, node, is_parameter, kPlain);
  }
  if (all.empty()) return {family, std::nullopt};
  std::vector<Count> counts;
  for (const Reading& one : all) counts.push_back(product({2, one.weights, one.positions}));
  return {refined(family, all), agreed(counts, rule)};
}

// Weights of N x K in any layout; the data has M x K.
std::optional<OperationCount> dense(const NodeInfo& node, const std::vector<bool>& is_parameter) {
  const Shape out = node.outputs.front().shape;
  if (out.empty()) return std::nullopt;
  const std::uint64_t columns = static_cast<std::uint64_t>(out.back());
  const std::uint64_t rows = elements(out) / columns;
  std::vector<Count> of_parameters, of_others;
  for (std::size_t w = 0; w < node.inputs.size(); ++w) {
    const Shape weights = node.inputs[w].shape;
    if (weights.size() < 2 || elements(weights) % columns != 0) continue;
    const std::uint64_t inner = elements(weights) / columns;
    if (weights.size() == 2 && static_cast<std::uint64_t>(weights[0]) != inner &&
        static_cast<std::uint64_t>(weights[1]) != inner) {
      continue;
    }
    const auto fits = [&](const TensorInfo& data) {
      if (data.shape.size() < 2) return false;
      const bool has_inner = static_cast<std::uint64_t>(data.shape.back()) == inner ||
                             static_cast<std::uint64_t>(data.shape.front()) == inner;
      return has_inner && elements(data.shape) / inner == rows;
    };
    bool has_data = false;
    for (std::size_t d = 0; d < node.inputs.size(); ++d) {
      has_data = has_data || (d != w && elements(weights) != 0 && fits(node.inputs[d]));
    }
    if (!has_data) continue;
    (is_parameter[w] ? of_parameters : of_others).push_back(product({2, rows, columns, inner}));
  }
  return agreed(of_parameters.empty() ? of_others : of_parameters, "2 x M x K x N");
}

// The size of the inner dimension if `operand` is (B or 1) x outer x K, or transposed.
std::vector<std::uint64_t> inner_sizes(Shape operand, Shape out, std::int64_t outer) {
  std::vector<std::uint64_t> sizes;
  if (operand.size() != 3 || (operand[0] != out[0] && operand[0] != 1)) return sizes;
  if (operand[1] == outer) sizes.push_back(static_cast<std::uint64_t>(operand[2]));
  if (operand[2] == outer) sizes.push_back(static_cast<std::uint64_t>(operand[1]));
  return sizes;
}

std::optional<OperationCount> batch_matmul(const NodeInfo& node) {
  const Shape out = node.outputs.front().shape;
  if (out.size() != 3) return std::nullopt;
  std::vector<Count> counts;
  for (std::size_t a = 0; a < node.inputs.size(); ++a) {
    // A matrix that is multiplied by itself is listed once.
    for (std::size_t b = node.inputs.size() == 1 ? a : a + 1; b < node.inputs.size(); ++b) {
      for (const std::uint64_t left : inner_sizes(node.inputs[a].shape, out, out[1])) {
        for (const std::uint64_t right : inner_sizes(node.inputs[b].shape, out, out[2])) {
          if (left == right) counts.push_back(product({2, elements(out), left}));
        }
      }
    }
  }
  return agreed(counts, "2 x batch x M x K x N");
}

std::optional<OperationCount> pooling(std::string_view anchor, const NodeInfo& node) {
  if (node.inputs.size() != 1) return std::nullopt;
  const Shape out = node.outputs.front().shape, in = node.inputs.front().shape;
  if (in.size() != out.size() || out.size() < 3) return std::nullopt;
  // Each window holds all positions where the output has a single one.
  const bool to_one = anchor.find("adaptive") != std::string_view::npos &&
                      ((out.size() == 4 && out[2] == 1 && out[3] == 1) ||
                       (out.size() == 4 && out[1] == 1 && out[2] == 1) ||
                       (out.size() == 5 && out[2] == 1 && out[3] == 1));
  if (!to_one && !anchor.starts_with("nn_global_")) return std::nullopt;
  return agreed({product({elements(in)})}, "elements of the input");
}

}  // namespace

std::optional<OperationCount> stated_operations(std::string_view multiply_adds) {
  const auto value = whole_number<std::uint64_t>(multiply_adds);
  if (!value) return std::nullopt;
  return agreed({product({2, *value})}, "2 x multiply-adds of the layer's definition");
}

Work work_of(const FunctionName& name, const NodeInfo& node,
             const std::vector<bool>& is_parameter) {
  const OperatorFamily family = family_of(name);
  Work work{family, std::nullopt};
  if (node.outputs.size() != 1 || elements(node.outputs.front().shape) == 0 ||
      node.outputs.front().shape.size() < 2) {
    return work;
  }
  // The operator that gives the function its family.
  std::string_view anchor;
  for (const std::string_view one : name.operators) {
    if (anchor.empty() && family_of({{one}, true}) == family) anchor = one;
  }
  switch (family) {
    case OperatorFamily::kConv2d:
    case OperatorFamily::kConv2dDepthwise:
    case OperatorFamily::kConv2dTranspose:
    case OperatorFamily::kConvOther:
      if (node.outputs.front().shape.size() < 3) return work;
      return convolution(family, anchor, node, is_parameter);
    case OperatorFamily::kDense:
      if (anchor == "nn_dense" || anchor == "nn_matmul" || anchor == "nn_contrib_dense_pack") {
        work.operations = dense(node, is_parameter);
      }
      return work;
    case OperatorFamily::kBatchMatmul:
      if (anchor == "nn_batch_matmul") work.operations = batch_matmul(node);
      return work;
    case OperatorFamily::kPool:
      work.operations = pooling(anchor, node);
      return work;
    default:
      return work;
  }
}

}  // namespace run_model
