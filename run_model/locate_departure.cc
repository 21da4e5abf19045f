#include "run_model/locate_departure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace run_model {
namespace {

// Tried in this order: a large departure is found among the roundings of what follows it, and a
// small one where there is no large one. Float32 sums in another order differ by some 1e-6 of the
// largest value after many layers.
constexpr std::array kTolerances{1e-3, 1e-4, 2e-5};
constexpr double kStrictest = kTolerances.back();

// An output of which so many elements are a tensor's is meant to be that tensor: it is wrong even
// if what follows hides it, as pooling does. Elements that are 0 are equal too easily.
constexpr double kMeantToBe = 0.5;

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

std::optional<Departure> departure_beyond(double tolerance, const std::vector<NodeInfo>& nodes,
                                          const std::vector<ReferenceMatch>& matches) {
  const std::vector<std::vector<std::size_t>> readers = readers_of(nodes);
  std::vector<bool> right(nodes.size());
  std::vector<bool> fine(nodes.size());
  for (std::size_t i = nodes.size(); i-- > 0;) {
    right[i] = is_right(matches[i], tolerance);
    fine[i] = right[i] || (!is_meant_to_be(matches[i]) &&
                           std::any_of(readers[i].begin(), readers[i].end(),
                                       [&](std::size_t reader) { return fine[reader]; }));
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (fine[i] || matches[i].tensor.empty()) continue;
    return Departure{i, tolerance, unmatched_before(i, readers, right)};
  }
  return std::nullopt;
}

}  // namespace

double ReferenceMatch::relative_error() const {
  if (largest_error == 0) return 0;
  return scale == 0 ? std::numeric_limits<double>::infinity() : largest_error / scale;
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
    if (reference.tensor.size() != output.size()) continue;
    if (ways.empty()) ways = readings(output);
    for (const Reading& way : ways) {
      ReferenceMatch match =
          compare(way.values, reference.tensor.elements<float>(), reference.scale);
      const bool better = best.tensor.empty() || match.wrong < best.wrong ||
                          (match.wrong == best.wrong && match.relative_error() < best.relative_error());
      if (!better) continue;
      match.tensor = reference.name;
      match.shape = reference.tensor.shape();
      match.layout = way.layout;
      best = std::move(match);
    }
    if (!best.tensor.empty() && best.wrong == 0) break;
  }
  return best;
}

std::optional<Departure> find_departure(const std::vector<NodeInfo>& nodes,
                                        const std::vector<ReferenceMatch>& matches) {
  for (const double tolerance : kTolerances) {
    if (const auto departure = departure_beyond(tolerance, nodes, matches)) return departure;
  }
  return std::nullopt;
}

std::vector<ReferenceMatch> match_nodes(GraphExecutor& executor,
                                        const ReferenceTensors& references) {
  std::vector<ReferenceMatch> matches;
  for (std::size_t i = 0; i < executor.nodes().size(); ++i) {
    executor.run_node(i);
    // Of several outputs the worst counts.
    ReferenceMatch worst;
    for (std::size_t output = 0; output < executor.nodes()[i].outputs.size(); ++output) {
      ReferenceMatch match = references.closest(executor.node_output(i, output));
      if (output == 0 || (!match.tensor.empty() && match.relative_error() > worst.relative_error())) {
        worst = std::move(match);
      }
    }
    matches.push_back(std::move(worst));
  }
  return matches;
}

}  // namespace run_model
