#include "run_model/check_zoo/locate_departure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace run_model {
namespace {

// Shares of a tensor's largest magnitude. Float32 sums in another order differ by some 1e-7 in one
// layer and by 1e-6 to 1e-5 after many, and a step like softmax makes that ten times as much. So a
// node departs where its error is beyond the first figure and so many times that of any node
// before.
constexpr double kStrictest = 2e-5;
constexpr double kGrowth = 20;

// For outputs that are a tensor but for a factor, whose own rounding adds to the rest; a share of
// the channel's largest magnitude.
constexpr double kScaledTolerance = 2e-4;

// About half a unit in the last place of a float32: less cannot be told from nothing.
constexpr double kUnitRoundoff = 6e-8;

// An output of which so many elements are a tensor's is meant to be that tensor: it is wrong even
// if what follows hides it, as pooling does. Elements that are 0 are equal too easily.
constexpr double kMeantToBe = 0.5;

// compile_model adds channels of zeros behind the real ones: at most this share of them
// (scripts/run_model_tools/inside_tvm/pad_channels.py).
constexpr double kMostPadding = 0.15;

struct Reading {
  std::string layout;
  std::vector<float> values;  // in the reference's order
};

// [n, a, h, w, b] to [n, a * b, h, w]
std::vector<float> from_blocked(std::span<const float> values,
                                const std::vector<std::int64_t>& shape) {
  const auto n = static_cast<std::size_t>(shape[0]), a = static_cast<std::size_t>(shape[1]),
             pixels = static_cast<std::size_t>(shape[2] * shape[3]),
             b = static_cast<std::size_t>(shape[4]);
  std::vector<float> result(values.size());
  std::size_t from = 0;
  for (std::size_t outer = 0; outer < n * a; ++outer) {
    for (std::size_t pixel = 0; pixel < pixels; ++pixel) {
      for (std::size_t inner = 0; inner < b; ++inner) {
        result[(outer * b + inner) * pixels + pixel] = values[from++];
      }
    }
  }
  return result;
}

// Every way in which an output may hold a tensor of the reference.
std::vector<Reading> readings(const Tensor& output) {
  const std::span<const float> values = output.elements<float>();
  const std::vector<std::int64_t>& shape = output.shape();
  std::vector<Reading> ways;
  ways.push_back({"as it is", {values.begin(), values.end()}});
  if (shape.size() == 5) ways.push_back({"NCHWc as NCHW", from_blocked(values, shape)});
  if (shape.size() == 4) {
    // NHWC is blocked with a single block.
    ways.push_back(
        {"NHWC as NCHW", from_blocked(values, {shape[0], 1, shape[1], shape[2], shape[3]})});
  }
  return ways;
}

ReferenceMatch compare(std::span<const float> actual, std::span<const float> expected,
                       double scale) {
  ReferenceMatch match;
  match.scale = scale;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double error = std::abs(static_cast<double>(actual[i]) - expected[i]);
    if (std::isnan(error)) error = std::numeric_limits<double>::infinity();
    match.largest_error = std::max(match.largest_error, error);
    const bool right = error <= kStrictest * scale;
    if (!right && match.wrong++ == 0) {
      match.first_wrong = i;
      match.expected = expected[i];
      match.actual = actual[i];
    }
    if (expected[i] == 0) continue;
    ++match.nonzero;
    if (right) ++match.nonzero_right;
  }
  return match;
}

// Whether the output may be the reference, perhaps with some more channels behind: readings() puts
// those behind all others, so that the reference's values come first.
bool may_be(const Tensor& output, const Tensor& reference) {
  if (output.size() == reference.size()) return true;
  const std::vector<std::int64_t>& expected = reference.shape();
  const std::vector<std::int64_t>& shape = output.shape();
  if (output.size() < reference.size() ||
      static_cast<double>(output.size()) >
          (1 + kMostPadding) * static_cast<double>(reference.size()) ||
      expected.size() != 4 || expected[0] != 1 || shape.size() < 4 || shape[0] != 1) {
    return false;
  }
  const auto has_pixels_at = [&](std::size_t axis) {
    return shape[axis] == expected[2] && shape[axis + 1] == expected[3];
  };
  return has_pixels_at(2) || (shape.size() == 4 && has_pixels_at(1));
}

// Whether every channel of `actual` is that of `expected`, [n, c, h, w], times a factor. Channels
// of one value would be so whatever it is: there must be values that tell.
bool is_scaled(std::span<const float> actual, std::span<const float> expected,
               const std::vector<std::int64_t>& shape) {
  if (shape.size() != 4 || expected.empty()) return false;
  const auto pixels = static_cast<std::size_t>(shape[2] * shape[3]);
  std::size_t telling = 0;
  for (std::size_t start = 0; start < expected.size(); start += pixels) {
    std::size_t largest = start;
    for (std::size_t i = start; i < start + pixels; ++i) {
      if (std::abs(expected[i]) > std::abs(expected[largest])) largest = i;
    }
    const double most = expected[largest];
    const double factor = most == 0 ? 0 : actual[largest] / most;
    if (most != 0 && factor == 0) return false;
    for (std::size_t i = start; i < start + pixels; ++i) {
      const double error = std::abs(actual[i] - factor * expected[i]);
      if (!(error <= kScaledTolerance * std::abs(factor * most))) return false;
      if (i != largest && expected[i] != 0) ++telling;
    }
  }
  return telling >= expected.size() / pixels;
}

bool is_right(const ReferenceMatch& match, double tolerance) {
  return !match.tensor.empty() && match.relative_error() <= tolerance;
}

bool is_meant_to_be(const ReferenceMatch& match) {
  return match.nonzero > 0 && static_cast<double>(match.nonzero_right) >=
                                  kMeantToBe * static_cast<double>(match.nonzero);
}

// For each node, the nodes that read one of its outputs.
std::vector<std::vector<std::size_t>> readers_of(const std::vector<NodeInfo>& nodes) {
  std::vector<std::vector<std::size_t>> readers(nodes.size());
  std::map<std::string, std::size_t> writer;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    for (const TensorInfo& input : nodes[i].inputs) {
      if (const auto found = writer.find(input.name); found != writer.end()) {
        readers[found->second].push_back(i);
      }
    }
    for (const TensorInfo& output : nodes[i].outputs) writer[output.name] = i;
  }
  return readers;
}

// The unmatched nodes from which `node` can be reached over unmatched nodes only.
std::vector<std::size_t> unmatched_before(std::size_t node,
                                          const std::vector<std::vector<std::size_t>>& readers,
                                          const std::vector<bool>& right) {
  std::vector<bool> leads(readers.size(), false);
  leads[node] = true;
  std::vector<std::size_t> found;
  for (std::size_t i = node; i-- > 0;) {
    leads[i] = !right[i] && std::any_of(readers[i].begin(), readers[i].end(),
                                        [&](std::size_t reader) { return leads[reader]; });
    if (leads[i]) found.push_back(i);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace

double ReferenceMatch::relative_error() const {
  if (largest_error == 0) return 0;
  return scale == 0 ? std::numeric_limits<double>::infinity() : largest_error / scale;
}

std::optional<Departure> find_departure(const std::vector<NodeInfo>& nodes,
                                        const std::vector<ReferenceMatch>& matches) {
  const std::vector<std::vector<std::size_t>> readers = readers_of(nodes);
  std::vector<double> tolerance(nodes.size());
  std::vector<bool> right(nodes.size());
  double rounding = 0;  // the largest error of a right node so far
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    tolerance[i] = std::max(kStrictest, kGrowth * rounding);
    right[i] = is_right(matches[i], tolerance[i]);
    if (right[i]) rounding = std::max(rounding, matches[i].relative_error());
  }
  std::vector<bool> fine(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    fine[i] = right[i] || (!is_meant_to_be(matches[i]) &&
                           std::any_of(readers[i].begin(), readers[i].end(),
                                       [&](std::size_t reader) { return fine[reader]; }));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (fine[i] || matches[i].scaled || matches[i].tensor.empty()) continue;
    return Departure{i, tolerance[i], unmatched_before(i, readers, right)};
  }
  return std::nullopt;
}

ReferenceTensors::ReferenceTensors(std::vector<NamedTensor> tensors) {
  for (NamedTensor& named : tensors) {
    if (!same_dtype(named.tensor.dtype(), DLDataType{kDLFloat, 32, 1})) continue;
    double scale = 0;
    for (const float value : named.tensor.elements<float>()) {
      scale = std::max(scale, std::abs(static_cast<double>(value)));
    }
    tensors_.push_back({std::move(named.name), std::move(named.tensor), scale});
  }
}

ReferenceMatch ReferenceTensors::closest(const Tensor& output) const {
  ReferenceMatch best;
  if (!same_dtype(output.dtype(), DLDataType{kDLFloat, 32, 1}) || output.size() == 0) return best;
  std::vector<Reading> ways;
  for (const Reference& reference : tensors_) {
    if (!may_be(output, reference.tensor)) continue;
    if (ways.empty()) ways = readings(output);
    for (const Reading& way : ways) {
      ReferenceMatch match =
          compare(way.values, reference.tensor.elements<float>(), reference.scale);
      const bool better =
          best.tensor.empty() || match.wrong < best.wrong ||
          (match.wrong == best.wrong && match.relative_error() < best.relative_error());
      if (!better) continue;
      match.tensor = reference.name;
      match.shape = reference.tensor.shape();
      match.layout = way.layout;
      best = std::move(match);
    }
    if (!best.tensor.empty() && best.wrong == 0) return best;
  }
  for (const Reference& reference : tensors_) {
    if (!may_be(output, reference.tensor)) continue;
    for (const Reading& way : ways) {
      const std::span<const float> expected = reference.tensor.elements<float>();
      if (!is_scaled(way.values, expected, reference.tensor.shape())) continue;
      best = compare(way.values, expected, reference.scale);
      best.tensor = reference.name;
      best.shape = reference.tensor.shape();
      best.layout = way.layout;
      best.scaled = true;
      return best;
    }
  }
  return best;
}

std::optional<ErrorGrowth> largest_growth(const std::vector<ReferenceMatch>& matches) {
  std::optional<ErrorGrowth> largest;
  double before = kUnitRoundoff;
  for (std::size_t i = 0; i < matches.size(); ++i) {
    if (matches[i].tensor.empty()) continue;
    const double error = matches[i].relative_error();
    // A node that was matched with a tensor that it is not says nothing about errors.
    if (!is_meant_to_be(matches[i])) continue;
    if (!largest || error * largest->before > largest->after * before) {
      largest = ErrorGrowth{i, before, error};
    }
    before = std::max(before, error);
  }
  return largest;
}

std::vector<ReferenceMatch> match_nodes(DebugExecutor& executor,
                                        const ReferenceTensors& references) {
  std::vector<ReferenceMatch> matches;
  for (std::size_t i = 0; i < executor.nodes().size(); ++i) {
    executor.run_node(i);
    // Of several outputs the worst counts.
    ReferenceMatch worst;
    for (std::size_t output = 0; output < executor.nodes()[i].outputs.size(); ++output) {
      ReferenceMatch match = references.closest(executor.node_output(i, output));
      if (output == 0 ||
          (!match.tensor.empty() && match.relative_error() > worst.relative_error())) {
        worst = std::move(match);
      }
    }
    matches.push_back(std::move(worst));
  }
  return matches;
}

}  // namespace run_model
