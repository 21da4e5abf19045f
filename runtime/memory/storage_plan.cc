#include "runtime/memory/storage_plan.h"

#include <algorithm>
#include <limits>

#include <run_model/error.h>
#include "base/text.h"

namespace run_model {
namespace {

constexpr std::size_t kNobody = std::numeric_limits<std::size_t>::max();

class Planner {
 public:
  Planner(const Graph& graph, const std::string& source) : graph_(graph), source_(source) {
    std::size_t entries = graph.entries.size();
    plan_.storage_bytes.resize(graph.num_storages);
    plan_.alias_of.resize(entries);
    owner_.resize(entries);
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const GraphNode& node = graph.nodes[n];
      for (std::size_t i = 0; i < node.num_outputs; ++i) {
        std::size_t entry = node.first_output + i;
        plan_.alias_of[entry] = entry;
        owner_[entry] = n;
        std::size_t& bytes = plan_.storage_bytes[graph.entries[entry].storage];
        bytes = std::max(bytes, graph.entries[entry].bytes);
      }
    }
  }

  StoragePlan plan() {
    holder_.assign(graph_.num_storages, kNobody);
    written_by_caller_.assign(graph_.num_storages, false);
    // Inputs and parameters are in place before the first node runs.
    for (std::size_t node : graph_.inputs) {
      std::size_t entry = graph_.nodes[node].first_output;
      occupy(entry);
      written_by_caller_[storage(entry)] = true;
    }
    for (const GraphNode& node : graph_.nodes) {
      if (node.kind != NodeKind::kInput) run(node);
    }
    for (std::size_t output : graph_.outputs) check_alive(output, nullptr);
    return std::move(plan_);
  }

 private:
  std::size_t storage(std::size_t entry) const { return graph_.entries[entry].storage; }

  void run(const GraphNode& node) {
    for (std::size_t input : node.inputs) check_alive(input, &node);
    bool shares =
        node.kind == NodeKind::kNop && storage(node.inputs[0]) == storage(node.first_output);
    if (shares) {
      plan_.alias_of[node.first_output] = plan_.alias_of[node.inputs[0]];
      return;
    }
    for (std::size_t i = 0; i < node.num_outputs; ++i) occupy(node.first_output + i);
    // Two outputs of one node in one storage: the later one would win.
    for (std::size_t i = 0; i < node.num_outputs; ++i) {
      check_alive(node.first_output + i, &node, " itself");
    }
  }

  void occupy(std::size_t entry) {
    std::size_t number = storage(entry);
    if (written_by_caller_[number]) {
      fail("the storage of the input " + name(holder_[number]) + " is given to " + name(entry) +
           " too");
    }
    holder_[number] = entry;
  }

  // reader: null is the caller.
  void check_alive(std::size_t entry, const GraphNode* reader, const char* itself = "") const {
    std::size_t holder = holder_[storage(entry)];
    if (holder == plan_.alias_of[entry]) return;
    fail("the storage of " + name(entry) + " is overwritten by " + name(holder) + " before " +
         (reader == nullptr ? "the caller" : "node " + in_quotes(reader->name)) + itself +
         " reads it");
  }

  std::string name(std::size_t entry) const {
    return entry == kNobody ? "nothing" : in_quotes(graph_.nodes[owner_[entry]].name);
  }

  [[noreturn]] void fail(const std::string& problem) const {
    throw Error(ErrorKind::kFormat, source_ + ": the storage plan is inconsistent: " + problem,
                "compile the model again, or copy the file again if it may be damaged");
  }

  const Graph& graph_;
  const std::string& source_;
  StoragePlan plan_;
  std::vector<std::size_t> owner_;   // the node of each entry
  std::vector<std::size_t> holder_;  // the entry (as an alias) whose values each storage holds now
  std::vector<bool> written_by_caller_;
};

}  // namespace

StoragePlan plan_storage(const Graph& graph, const std::string& source) {
  return Planner(graph, source).plan();
}

}  // namespace run_model
