#include "runtime/memory/memory_plan.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string_view>

#include <run_model/error.h>
#include <run_model/tensor.h>

namespace run_model {
namespace {

std::size_t aligned_sum(std::size_t a, std::size_t b, std::size_t alignment) {
  std::size_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum) ||
      __builtin_add_overflow(sum, (alignment - sum % alignment) % alignment, &sum)) {
    throw Error(ErrorKind::kFormat, "the graph's tensors are larger than any memory");
  }
  return sum;
}

// By the kind of device, where all tensors on it begin.
class Alignments {
 public:
  explicit Alignments(const DeviceAlignments& devices) : devices_(devices) {}

  std::size_t operator[](DLDeviceType device) const {
    const auto known = devices_.find(device);
    return known == devices_.end() ? kTensorAlignment : std::lcm(known->second, kTensorAlignment);
  }

 private:
  const DeviceAlignments& devices_;
};

// Whether TVM's name for the function says that it concatenates and does nothing else:
// "fused_concatenate_3" (0.7), "tvmgen_default_fused_concatenate_3" (0.8 and later). Names of
// functions with more operators list all of them.
bool only_concatenates(std::string_view function) {
  const std::size_t start = function.find("fused_");
  if (start == std::string_view::npos) return false;
  function.remove_prefix(start);
  while (!function.empty() && std::isdigit(static_cast<unsigned char>(function.back()))) {
    function.remove_suffix(1);
  }
  return function == "fused_concatenate" || function == "fused_concatenate_";
}

// Whether joining tensors of `parts` gives `whole` by putting their elements behind each other: all
// dimensions but one are equal, those before it are 1, and that one adds up.
bool joins_as_memory(const std::vector<const GraphEntry*>& parts, const GraphEntry& whole) {
  std::int64_t sum = 0;
  std::size_t axis = whole.shape.size();
  for (const GraphEntry* part : parts) {
    if (part->shape.size() != whole.shape.size() || !same_dtype(part->dtype, whole.dtype))
      return false;
    for (std::size_t d = 0; d < whole.shape.size(); ++d) {
      if (part->shape[d] == whole.shape[d]) continue;
      if (axis != whole.shape.size() && axis != d) return false;
      axis = d;
    }
  }
  if (axis == whole.shape.size()) return false;
  for (std::size_t d = 0; d < axis; ++d) {
    if (whole.shape[d] != 1) return false;
  }
  // Sizes in bytes were checked to fit when the graph was read.
  for (const GraphEntry* part : parts) sum += part->shape[axis];
  return sum == whole.shape[axis];
}

// First and last node that need a tensor's memory.
struct Lifetime {
  std::size_t first = std::numeric_limits<std::size_t>::max();
  std::size_t last = 0;

  void include(std::size_t node) {
    first = std::min(first, node);
    last = std::max(last, node);
  }
  void include(const Lifetime& other) {
    first = std::min(first, other.first);
    last = std::max(last, other.last);
  }
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

class TightPlanner {
 public:
  TightPlanner(const Graph& graph, const StoragePlan& storages, const std::vector<bool>& is_param,
               const Alignments& alignments)
      : graph_(graph), alias_of_(storages.alias_of), is_param_(is_param), alignments_(alignments) {}

  MemoryPlan plan() {
    plan_.joined.assign(graph_.nodes.size(), false);
    parent_.resize(graph_.entries.size());
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
    offset_in_parent_.assign(graph_.entries.size(), 0);
    find_fixed();
    for (std::size_t node = 0; node < graph_.nodes.size(); ++node) join(node);
    find_roots();
    find_lifetimes();
    place_roots();
    return std::move(plan_);
  }

 private:
  // What a caller places or reads: it cannot become a part of something else.
  void find_fixed() {
    fixed_.assign(graph_.entries.size(), false);
    for (std::size_t node : graph_.inputs) fixed_[graph_.nodes[node].first_output] = true;
    for (std::size_t output : graph_.outputs) fixed_[alias_of_[output]] = true;
  }

  void join(std::size_t number) {
    const GraphNode& node = graph_.nodes[number];
    if (node.kind != NodeKind::kFunction || node.num_outputs != 1 || node.inputs.size() < 2 ||
        !only_concatenates(node.function)) {
      return;
    }
    const std::size_t whole = node.first_output;
    // What a device sees of its memory through two handles at once is not for sure.
    if (graph_.entries[whole].device != kDLCPU) return;
    std::vector<const GraphEntry*> parts;
    std::vector<std::size_t> taken;
    std::size_t offset = 0;
    for (std::size_t input : node.inputs) {
      const std::size_t part = alias_of_[input];
      const bool seen = std::find(taken.begin(), taken.end(), part) != taken.end();
      if (seen || graph_.entries[part].device != kDLCPU || fixed_[part] || is_param_[part] ||
          parent_[part] != part || offset % kTensorAlignment != 0) {
        return;
      }
      taken.push_back(part);
      parts.push_back(&graph_.entries[input]);
      offset += graph_.entries[input].bytes;
    }
    if (!joins_as_memory(parts, graph_.entries[whole]) || offset != graph_.entries[whole].bytes)
      return;
    offset = 0;
    for (std::size_t part : taken) {
      parent_[part] = whole;
      offset_in_parent_[part] = offset;
      offset += graph_.entries[part].bytes;
    }
    plan_.joined[number] = true;
  }

  // Parents come later than their parts, so one pass from the end resolves chains.
  void find_roots() {
    plan_.root.resize(graph_.entries.size());
    for (std::size_t i = graph_.entries.size(); i-- > 0;) {
      const std::size_t alias = alias_of_[i];
      if (alias != i) continue;
      if (parent_[i] == i) {
        plan_.root[i] = i;
      } else {
        plan_.root[i] = plan_.root[parent_[i]];
        offset_in_parent_[i] += offset_in_parent_[parent_[i]];
      }
    }
    for (std::size_t i = 0; i < graph_.entries.size(); ++i) {
      plan_.root[i] = plan_.root[alias_of_[i]];
      offset_in_parent_[i] = offset_in_parent_[alias_of_[i]];
    }
  }

  void find_lifetimes() {
    lifetimes_.resize(graph_.entries.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const GraphNode& node = graph_.nodes[n];
      for (std::size_t input : node.inputs) lifetimes_[plan_.root[input]].include(n);
      for (std::size_t i = 0; i < node.num_outputs; ++i) {
        lifetimes_[plan_.root[node.first_output + i]].include(n);
      }
    }
    const Lifetime always{0, graph_.nodes.size()};
    for (std::size_t node : graph_.inputs) {
      lifetimes_[plan_.root[graph_.nodes[node].first_output]].include(always);
    }
    for (std::size_t output : graph_.outputs) {
      lifetimes_[plan_.root[output]].include(graph_.nodes.size());
    }
  }

  void place_roots() {
    std::vector<std::size_t> roots;
    for (std::size_t i = 0; i < graph_.entries.size(); ++i) {
      if (plan_.root[i] == i && !is_param_[i]) roots.push_back(i);
    }
    std::sort(roots.begin(), roots.end(), [&](std::size_t a, std::size_t b) {
      const std::size_t size_a = graph_.entries[a].bytes, size_b = graph_.entries[b].bytes;
      return size_a != size_b ? size_a > size_b : a < b;
    });
    plan_.offset.assign(graph_.entries.size(), MemoryPlan::kNotPlaced);
    std::vector<std::size_t> placed;  // by offset
    for (std::size_t root : roots) {
      const std::size_t bytes = graph_.entries[root].bytes;
      const DLDeviceType device = graph_.entries[root].device;
      const std::size_t alignment = alignments_[device];
      std::size_t offset = 0;
      for (std::size_t other : placed) {
        if (graph_.entries[other].device != device) continue;
        if (!lifetimes_[other].overlaps(lifetimes_[root])) continue;
        if (aligned_sum(offset, bytes, alignment) <= plan_.offset[other]) break;
        offset = std::max(offset,
                          aligned_sum(plan_.offset[other], graph_.entries[other].bytes, alignment));
      }
      plan_.offset[root] = offset;
      std::size_t& block = plan_.bytes_on(device);
      block = std::max(block, aligned_sum(offset, bytes, alignment));
      placed.insert(std::upper_bound(placed.begin(), placed.end(), root,
                                     [&](std::size_t a, std::size_t b) {
                                       return plan_.offset[a] < plan_.offset[b];
                                     }),
                    root);
    }
    for (std::size_t i = 0; i < graph_.entries.size(); ++i) {
      if (is_param_[plan_.root[i]]) continue;
      plan_.offset[i] = plan_.offset[plan_.root[i]] + offset_in_parent_[i];
    }
  }

  const Graph& graph_;
  const std::vector<std::size_t>& alias_of_;
  const std::vector<bool>& is_param_;
  const Alignments& alignments_;
  MemoryPlan plan_;
  std::vector<bool> fixed_;                    // by alias
  std::vector<std::size_t> parent_;            // of an alias: the concatenation it is a part of
  std::vector<std::size_t> offset_in_parent_;  // in the root's memory once roots are found
  std::vector<Lifetime> lifetimes_;            // by root
};

MemoryPlan compiler_plan(const Graph& graph, const StoragePlan& storages,
                         const std::vector<bool>& is_param, const Alignments& alignments) {
  MemoryPlan plan;
  plan.joined.assign(graph.nodes.size(), false);
  plan.root = storages.alias_of;
  std::vector<bool> elsewhere(graph.num_storages, false);
  std::vector<DLDeviceType> devices(graph.num_storages, kDLCPU);
  for (std::size_t i = 0; i < graph.entries.size(); ++i) {
    if (is_param[i]) elsewhere[graph.entries[i].storage] = true;
    devices[graph.entries[i].storage] = graph.entries[i].device;
  }
  std::vector<std::size_t> offsets(graph.num_storages, MemoryPlan::kNotPlaced);
  for (std::size_t i = 0; i < graph.num_storages; ++i) {
    if (elsewhere[i]) continue;
    std::size_t& block = plan.bytes_on(devices[i]);
    offsets[i] = block;
    block = aligned_sum(block, storages.storage_bytes[i], alignments[devices[i]]);
  }
  for (const GraphEntry& entry : graph.entries) plan.offset.push_back(offsets[entry.storage]);
  return plan;
}

}  // namespace

MemoryPlan plan_memory(const Graph& graph, const StoragePlan& storages,
                       const std::vector<bool>& is_param, MemoryPlanning planning,
                       const DeviceAlignments& device_alignments) {
  const Alignments alignments(device_alignments);
  if (planning == MemoryPlanning::kCompiler || graph.entries.size() > kMostTightEntries) {
    return compiler_plan(graph, storages, is_param, alignments);
  }
  return TightPlanner(graph, storages, is_param, alignments).plan();
}

}  // namespace run_model
