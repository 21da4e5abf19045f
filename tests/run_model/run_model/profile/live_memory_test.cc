#include "run_model/run_model/profile/live_memory.h"
#include "tests/has_elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <run_model/graph.h>

namespace run_model {
namespace {

// A node and its single output of so many bytes in that storage.
struct Step {
  NodeKind kind;
  std::vector<std::size_t> inputs;
  std::size_t bytes;
  std::size_t storage;
};

Graph make_graph(const std::vector<Step>& steps, std::vector<std::size_t> outputs) {
  Graph graph;
  for (const Step& step : steps) {
    GraphNode node;
    node.name = "n" + std::to_string(graph.nodes.size());
    node.kind = step.kind;
    node.inputs = step.inputs;
    node.first_output = graph.entries.size();
    if (step.kind == NodeKind::kInput) graph.inputs.push_back(graph.nodes.size());
    graph.nodes.push_back(node);
    graph.entries.push_back(
        {{static_cast<std::int64_t>(step.bytes)}, {kDLUInt, 8, 1}, step.bytes, step.storage});
    graph.num_storages = std::max(graph.num_storages, step.storage + 1);
  }
  graph.outputs = std::move(outputs);
  return graph;
}

std::vector<std::size_t> live(const std::vector<NodeMemory>& nodes) {
  std::vector<std::size_t> bytes;
  for (const NodeMemory& node : nodes) bytes.push_back(node.live);
  return bytes;
}

TEST(LiveMemoryTest, FollowsTensorsThroughAChain) {
  const Graph graph = make_graph({{NodeKind::kInput, {}, 100, 0},
                                  {NodeKind::kInput, {}, 7, 1},  // a parameter
                                  {NodeKind::kFunction, {0, 1}, 50, 2},
                                  {NodeKind::kFunction, {2}, 20, 3},
                                  {NodeKind::kFunction, {3, 3, 2}, 10, 4}},
                                 {4});
  const auto nodes = node_memory(graph, {false, true, false, false, false}, {false, false, false});
  EXPECT_TRUE(has_elements(live(nodes), {150, 70, 80}));
  EXPECT_EQ(nodes[0].read, 107u);
  EXPECT_EQ(nodes[0].parameters, 7u);
  EXPECT_TRUE(has_elements(nodes[0].is_parameter, {false, true}));
  EXPECT_EQ(nodes[0].written, 50u);
  // The same tensor twice is read once.
  EXPECT_EQ(nodes[2].read, 70u);
}

TEST(LiveMemoryTest, ViewsAddNothing) {
  const Graph graph = make_graph({{NodeKind::kInput, {}, 8, 0},
                                  {NodeKind::kFunction, {0}, 40, 1},
                                  {NodeKind::kNop, {1}, 40, 1},
                                  {NodeKind::kFunction, {2}, 4, 2}},
                                 {3});
  const auto nodes = node_memory(graph, std::vector<bool>(4), std::vector<bool>(3));
  EXPECT_TRUE(has_elements(live(nodes), {48, 40, 44}));
  EXPECT_TRUE(nodes[1].is_view);
  EXPECT_EQ(nodes[1].read + nodes[1].written, 0u);
  EXPECT_EQ(nodes[2].read, 40u);
}

TEST(LiveMemoryTest, JoinedTensorsGoOnInTheirWhole) {
  const Graph graph = make_graph({{NodeKind::kInput, {}, 8, 0},
                                  {NodeKind::kFunction, {0}, 30, 1},
                                  {NodeKind::kFunction, {0}, 12, 2},
                                  {NodeKind::kFunction, {1, 2}, 42, 3},
                                  {NodeKind::kFunction, {3, 1}, 5, 4}},
                                 {4});
  const auto nodes = node_memory(graph, std::vector<bool>(5), {false, false, true, false});
  EXPECT_TRUE(has_elements(live(nodes), {38, 50, 42, 47}));
  EXPECT_TRUE(nodes[2].is_view);
  EXPECT_EQ(nodes[3].read, 42u);
}

TEST(LiveMemoryTest, OutputsStayToTheEnd) {
  const Graph graph = make_graph({{NodeKind::kInput, {}, 1, 0},
                                  {NodeKind::kFunction, {0}, 10, 1},
                                  {NodeKind::kFunction, {0}, 100, 2},
                                  {NodeKind::kFunction, {0}, 1000, 3}},
                                 {1, 0});
  EXPECT_TRUE(has_elements(live(node_memory(graph, std::vector<bool>(4), std::vector<bool>(3))),
                           {11, 111, 1011}));
}

TEST(LiveMemoryTest, AGraphMayComputeNothing) {
  const Graph graph = make_graph({{NodeKind::kInput, {}, 1, 0}}, {0});
  EXPECT_TRUE(node_memory(graph, {false}, {}).empty());
}

}  // namespace
}  // namespace run_model
