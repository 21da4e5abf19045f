#include "run_model/run_model/profile/live_memory.h"

#include <algorithm>
#include <utility>

#include "runtime/memory/storage_plan.h"

namespace run_model {
namespace {

constexpr std::size_t kNever = static_cast<std::size_t>(-1);

// From and to which executable node a tensor is needed.
struct Lifetime {
  std::size_t first = kNever;
  std::size_t last = 0;
  std::size_t bytes = 0;
  bool is_parameter = false;
};

class Account {
 public:
  Account(const Graph& graph, const std::vector<bool>& is_parameter,
          const std::vector<bool>& joined)
      : graph_(graph),
        alias_of_(plan_storage(graph, "the graph").alias_of),
        part_of_(graph.entries.size(), kNever),
        lifetimes_(graph.entries.size()) {
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
      if (graph.nodes[i].kind == NodeKind::kInput) {
        Lifetime& lifetime = lifetimes_[graph.nodes[i].first_output];
        lifetime = {0, 0, graph.entries[graph.nodes[i].first_output].bytes, is_parameter[i]};
      } else {
        add_node(graph.nodes[i], joined[nodes_.size()]);
      }
    }
    for (const std::size_t output : graph.outputs) {
      if (!nodes_.empty()) lifetime(output).last = nodes_.size() - 1;
    }
  }

  std::vector<NodeMemory> with_live_bytes() && {
    // What comes and goes at each node.
    std::vector<std::size_t> first(nodes_.size() + 1), after_last(nodes_.size() + 1);
    for (const Lifetime& lifetime : lifetimes_) {
      if (lifetime.first == kNever || lifetime.is_parameter || nodes_.empty()) continue;
      first[lifetime.first] += lifetime.bytes;
      after_last[lifetime.last + 1] += lifetime.bytes;
    }
    std::size_t live = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      live += first[i] - after_last[i];
      nodes_[i].live = live;
    }
    return std::move(nodes_);
  }

 private:
  // The entry that stands for the memory of `entry` now.
  std::size_t holder(std::size_t entry) const {
    entry = alias_of_[entry];
    while (part_of_[entry] != kNever) entry = part_of_[entry];
    return entry;
  }

  Lifetime& lifetime(std::size_t entry) { return lifetimes_[holder(entry)]; }

  void add_node(const GraphNode& node, bool joined) {
    const std::size_t index = nodes_.size();
    NodeMemory memory;
    memory.is_view = joined || (node.kind == NodeKind::kNop &&
                                alias_of_[node.first_output] != node.first_output);
    std::vector<std::size_t> seen;
    for (const std::size_t input : node.inputs) {
      Lifetime& tensor = lifetime(input);
      // What is joined ends where its whole begins.
      if (!joined) tensor.last = index;
      memory.is_parameter.push_back(tensor.is_parameter);
      if (memory.is_view || std::find(seen.begin(), seen.end(), holder(input)) != seen.end()) {
        continue;
      }
      seen.push_back(holder(input));
      memory.read += tensor.bytes;
      if (tensor.is_parameter) memory.parameters += tensor.bytes;
    }
    for (std::size_t i = 0; i < node.num_outputs; ++i) {
      const std::size_t entry = node.first_output + i;
      if (memory.is_view && !joined) break;
      lifetimes_[entry] = {index, index, graph_.entries[entry].bytes, false};
      if (!joined) memory.written += graph_.entries[entry].bytes;
    }
    if (joined) {
      for (const std::size_t input : node.inputs) {
        if (holder(input) == node.first_output) continue;
        lifetime(input).last = index - 1;
        part_of_[holder(input)] = node.first_output;
      }
    }
    nodes_.push_back(std::move(memory));
  }

  const Graph& graph_;
  const std::vector<std::size_t> alias_of_;
  std::vector<std::size_t> part_of_;  // the output of the joined node that an entry went into
  std::vector<Lifetime> lifetimes_;   // of each entry that is no other one's alias
  std::vector<NodeMemory> nodes_;
};

}  // namespace

std::vector<NodeMemory> node_memory(const Graph& graph, const std::vector<bool>& is_parameter,
                                    const std::vector<bool>& joined) {
  return Account(graph, is_parameter, joined).with_live_bytes();
}

}  // namespace run_model
