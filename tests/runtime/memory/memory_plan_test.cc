#include "runtime/memory/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include <run_model/error.h>
#include <run_model/tensor.h>
#include "tests/runtime/test_graphs.h"

namespace run_model {
namespace {

using testing_graphs::call_node;
using testing_graphs::graph_of;
using testing_graphs::input_node;
using testing_graphs::json;

struct Planned {
  Graph graph;
  MemoryPlan plan;
};

Planned plan(const json& document, MemoryPlanning planning = MemoryPlanning::kTight,
             const std::vector<std::size_t>& params = {}) {
  Planned result{parse_graph(document.dump(), "g"), {}};
  std::vector<bool> is_param(result.graph.entries.size(), false);
  for (std::size_t entry : params) is_param[entry] = true;
  result.plan = plan_memory(result.graph, plan_storage(result.graph, "g"), is_param, planning);
  return result;
}

json shaped(json document, const std::vector<std::vector<std::int64_t>>& shapes) {
  document["attrs"]["shape"][1] = shapes;
  return document;
}

// Runs the graph on bytes that name who wrote them: the value of an entry is its number over all of
// its bytes, and a reader must find the bytes of what it reads as they were written.
void expect_nothing_is_overwritten(const Planned& planned) {
  const Graph& graph = planned.graph;
  const MemoryPlan& plan = planned.plan;
  ASSERT_EQ(plan.offset.size(), graph.entries.size());
  std::vector<std::size_t> writer(plan.bytes, MemoryPlan::kNotPlaced);
  const auto write = [&](std::size_t entry, std::size_t tag) {
    for (std::size_t i = 0; i < graph.entries[entry].bytes; ++i) {
      writer.at(plan.offset[entry] + i) = tag;
    }
  };
  std::vector<std::vector<std::size_t>> value(graph.entries.size());  // of each byte
  const auto expect_value = [&](std::size_t entry) {
    const auto start = writer.begin() + static_cast<std::ptrdiff_t>(plan.offset[entry]);
    const auto bytes = static_cast<std::ptrdiff_t>(graph.entries[entry].bytes);
    EXPECT_EQ(std::vector<std::size_t>(start, start + bytes), value[entry]) << "entry " << entry;
  };
  for (std::size_t node : graph.inputs) {
    const std::size_t entry = graph.nodes[node].first_output;
    write(entry, entry);
    value[entry].assign(graph.entries[entry].bytes, entry);
  }
  for (int run = 0; run < 2; ++run) {  // inputs are not set again before the second run
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const GraphNode& node = graph.nodes[n];
      if (node.kind == NodeKind::kInput) continue;
      for (std::size_t input : node.inputs) expect_value(input);
      std::vector<std::size_t> joined;
      for (std::size_t input : node.inputs) {
        joined.insert(joined.end(), value[input].begin(), value[input].end());
      }
      for (std::size_t i = 0; i < node.num_outputs; ++i) {
        const std::size_t entry = node.first_output + i;
        EXPECT_EQ(plan.offset[entry] % kTensorAlignment, 0u);
        if (plan.joined[n] || node.kind == NodeKind::kNop) {
          value[entry] = joined;
          if (plan.offset[entry] != plan.offset[node.inputs[0]]) {
            ASSERT_EQ(node.kind, NodeKind::kNop);
            write(entry, entry);  // a reshape into other memory copies
            value[entry].assign(graph.entries[entry].bytes, entry);
          }
        } else {
          write(entry, entry);
          value[entry].assign(graph.entries[entry].bytes, entry);
        }
      }
    }
    for (std::size_t output : graph.outputs) expect_value(output);
    for (std::size_t node : graph.inputs) expect_value(graph.nodes[node].first_output);
  }
}

TEST(MemoryPlan, ReusesMemoryOfFinishedTensors) {
  // x → a → b → c: a and c never live at the same time, and the compiler gave each its own storage.
  const json document = graph_of({input_node("x"), call_node("a", "f", {{0, 0}}),
                                  call_node("b", "f", {{1, 0}}), call_node("c", "f", {{2, 0}})},
                                 {0, 1, 2, 3}, {{3, 0}});
  const Planned tight = plan(document);
  EXPECT_EQ(tight.plan.bytes, 3 * kTensorAlignment);
  EXPECT_EQ(plan(document, MemoryPlanning::kCompiler).plan.bytes, 4 * kTensorAlignment);
  EXPECT_EQ(tight.plan.offset[1], tight.plan.offset[3]);
  expect_nothing_is_overwritten(tight);
}

TEST(MemoryPlan, KeepsParametersOutOfTheBlock) {
  const json document =
      graph_of({input_node("x"), input_node("w"), call_node("a", "f", {{0, 0}, {1, 0}})}, {0, 1, 2},
               {{2, 0}});
  const Planned tight = plan(document, MemoryPlanning::kTight, {1});
  EXPECT_EQ(tight.plan.offset[1], MemoryPlan::kNotPlaced);
  EXPECT_EQ(tight.plan.bytes, 2 * kTensorAlignment);
  EXPECT_EQ(plan(document, MemoryPlanning::kCompiler, {1}).plan.bytes, 2 * kTensorAlignment);
}

// x → a, b → joined → c; the tensors have 32 and 64 floats.
json planned_join_graph(const std::string& function = "tvmgen_default_fused_concatenate_2") {
  return shaped(
      graph_of({input_node("x"), call_node("a", "f", {{0, 0}}), call_node("b", "f", {{0, 0}}),
                call_node("joined", function, {{1, 0}, {2, 0}}), call_node("c", "f", {{3, 0}})},
               {0, 1, 2, 3, 4}, {{4, 0}}),
      {{1, 64}, {1, 32}, {1, 64}, {1, 96}, {1, 96}});
}

TEST(MemoryPlan, PutsTheInputsOfAConcatenationBehindEachOther) {
  for (const char* name :
       {"fused_concatenate", "fused_concatenate_12", "tvmgen_default_fused_concatenate",
        "tvmgen_default_fused_concatenate_2"}) {
    const Planned planned = plan(planned_join_graph(name));
    EXPECT_TRUE(planned.plan.joined[3]) << name;
    EXPECT_EQ(planned.plan.offset[1], planned.plan.offset[3]);
    EXPECT_EQ(planned.plan.offset[2], planned.plan.offset[3] + 128);
    EXPECT_EQ(planned.plan.root[2], 3u);
    expect_nothing_is_overwritten(planned);
  }
  EXPECT_FALSE(plan(planned_join_graph(), MemoryPlanning::kCompiler).plan.joined[3]);
}

TEST(MemoryPlan, RunsFunctionsThatDoMoreThanConcatenate) {
  for (const char* name :
       {"fused_concatenate_nn_relu", "tvmgen_default_fused_concatenate_layout_transform_1",
        "fused_layout_transform_concatenate", "fused_qnn_concatenate", "concatenate",
        "my_fused_concatenate_x"}) {
    const Planned planned = plan(planned_join_graph(name));
    EXPECT_FALSE(planned.plan.joined[3]) << name;
    expect_nothing_is_overwritten(planned);
  }
}

TEST(MemoryPlan, RunsConcatenationsThatAreNoMemoryInARow) {
  const auto joined = [](const json& document) -> bool { return plan(document).plan.joined[3]; };
  // Along the second axis of two rows; parts of unaligned size; sizes that do not add up.
  EXPECT_FALSE(joined(shaped(planned_join_graph(), {{2, 64}, {2, 32}, {2, 64}, {2, 96}, {2, 96}})));
  EXPECT_FALSE(joined(shaped(planned_join_graph(), {{1, 64}, {1, 30}, {1, 64}, {1, 94}, {1, 94}})));
  EXPECT_FALSE(
      joined(shaped(planned_join_graph(), {{1, 64}, {1, 32}, {1, 64}, {1, 128}, {1, 96}})));
  EXPECT_FALSE(joined(shaped(planned_join_graph(), {{1, 64}, {1, 32}, {1, 64}, {96}, {1, 96}})));
  EXPECT_TRUE(
      joined(shaped(planned_join_graph(), {{1, 64}, {1, 1, 32}, {1, 2, 32}, {1, 3, 32}, {1, 96}})));
}

TEST(MemoryPlan, LeavesWhatACallerPlacesOrReadsAlone) {
  // An input as a part, the same tensor twice, a part that is an output of the graph too.
  json of_input = planned_join_graph();
  of_input["nodes"][3]["inputs"][1] = {0, 0, 0};
  EXPECT_FALSE(plan(of_input).plan.joined[3]);
  json twice = shaped(planned_join_graph(), {{1, 64}, {1, 64}, {1, 64}, {1, 128}, {1, 128}});
  twice["nodes"][3]["inputs"][1] = {1, 0, 0};
  EXPECT_FALSE(plan(twice).plan.joined[3]);
  json output = planned_join_graph();
  output["heads"].push_back({1, 0, 0});
  EXPECT_FALSE(plan(output).plan.joined[3]);
  expect_nothing_is_overwritten(plan(output));
}

TEST(MemoryPlan, JoinsWhatWasJoined) {
  const json document = shaped(
      graph_of(
          {input_node("x"), call_node("a", "f", {{0, 0}}), call_node("b", "f", {{0, 0}}),
           call_node("ab", "fused_concatenate", {{1, 0}, {2, 0}}), call_node("c", "f", {{3, 0}}),
           call_node("cab", "fused_concatenate_1", {{4, 0}, {3, 0}})},
          {0, 1, 2, 3, 4, 5}, {{5, 0}}),
      {{1, 32}, {1, 32}, {1, 64}, {1, 96}, {1, 32}, {1, 128}});
  const Planned planned = plan(document);
  EXPECT_TRUE(planned.plan.joined[3]);
  EXPECT_TRUE(planned.plan.joined[5]);
  const std::size_t start = planned.plan.offset[5];
  EXPECT_EQ(planned.plan.offset[4], start);
  EXPECT_EQ(planned.plan.offset[3], start + 128);
  EXPECT_EQ(planned.plan.offset[2], start + 256);
  EXPECT_EQ(planned.plan.root[1], 5u);
  expect_nothing_is_overwritten(planned);
}

// Random graphs of functions with several inputs and outputs, reshapes and concatenations.
TEST(MemoryPlan, OverwritesNothingInRandomGraphs) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) { return static_cast<int>(random() % limit); };
  std::size_t joined = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<json> nodes{input_node("x"), input_node("y")};
    std::vector<std::vector<std::int64_t>> shapes{{1, 32 * (1 + below(3))}, {1, 16}};
    std::vector<std::vector<int>> entries{{0, 0}, {1, 0}};  // node and output of each
    std::vector<int> storages{0, 1};
    const int length = 3 + below(20);
    for (int n = 2; n < length; ++n) {
      const std::string name = "n" + std::to_string(n);
      const std::size_t a = static_cast<std::size_t>(below(entries.size()));
      const std::size_t b = static_cast<std::size_t>(below(entries.size()));
      int outputs = 1;
      switch (below(4)) {
        case 0:
          nodes.push_back(call_node(name, "__nop", {entries[a]}));
          shapes.push_back(shapes[a]);
          storages.push_back(below(2) == 0 ? storages[a] : static_cast<int>(storages.size()));
          break;
        case 1:
          nodes.push_back(call_node(name, "fused_concatenate", {entries[a], entries[b]}));
          shapes.push_back({1, shapes[a][1] + shapes[b][1]});
          storages.push_back(static_cast<int>(storages.size()));
          break;
        default:
          outputs = 1 + below(2);
          nodes.push_back(call_node(name, "f", {entries[a], entries[b]}, outputs));
          for (int i = 0; i < outputs; ++i) {
            shapes.push_back({1, 8 * (1 + below(12))});
            storages.push_back(static_cast<int>(storages.size()));
          }
      }
      for (int i = 0; i < outputs; ++i) entries.push_back({n, i});
    }
    const std::size_t inside = static_cast<std::size_t>(below(entries.size()));
    const Planned planned =
        plan(shaped(graph_of(nodes, storages, {entries.back(), entries[inside]}), shapes));
    expect_nothing_is_overwritten(planned);
    joined += static_cast<std::size_t>(
        std::count(planned.plan.joined.begin(), planned.plan.joined.end(), true));
    ASSERT_FALSE(HasFailure()) << "trial " << trial;
  }
  EXPECT_GT(joined, 30u);
}

TEST(MemoryPlan, LeavesHugeGraphsToTheCompiler) {
  std::vector<json> nodes{input_node("x")};
  std::vector<int> storages{0};
  for (int i = 1; i <= static_cast<int>(kMostTightEntries); ++i) {
    nodes.push_back(call_node("n" + std::to_string(i), "f", {{i - 1, 0}}));
    storages.push_back(1 + i % 2);
  }
  const Planned planned =
      plan(graph_of(nodes, storages, {{static_cast<int>(kMostTightEntries), 0}}));
  EXPECT_EQ(planned.plan.bytes, 3 * kTensorAlignment);
  EXPECT_EQ(planned.plan.root[5], 5u);
}

}  // namespace
}  // namespace run_model
