#include <run_model/graph.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include <run_model/error.h>
#include "tests/has_elements.h"
#include "tests/runtime/test_graphs.h"

namespace run_model {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing_graphs::chain_graph;
using testing_graphs::json;

Graph parse(const json& document) { return parse_graph(document.dump(), "graph file 'g.json'"); }

TEST(GraphJson, ReadsNodesEntriesInputsAndOutputs) {
  Graph graph = parse(chain_graph());
  ASSERT_EQ(graph.nodes.size(), 5u);
  EXPECT_EQ(graph.nodes[0].kind, NodeKind::kInput);
  EXPECT_EQ(graph.nodes[2].kind, NodeKind::kFunction);
  EXPECT_EQ(graph.nodes[2].function, "fused_f");
  EXPECT_TRUE(has_elements(graph.nodes[2].inputs, {0, 1}));
  EXPECT_EQ(graph.nodes[3].kind, NodeKind::kNop);
  EXPECT_TRUE(has_elements(graph.inputs, {0, 1}));
  EXPECT_TRUE(has_elements(graph.outputs, {4}));
  EXPECT_EQ(graph.num_storages, 4u);
  EXPECT_EQ(graph.entries[0].bytes, 16u);
}

TEST(GraphJson, NumbersTheOutputsOfNodesWithSeveral) {
  Graph graph = parse(testing_graphs::graph_of(
      {testing_graphs::input_node("x"), testing_graphs::call_node("s", "split", {{0, 0}}, 3),
       testing_graphs::call_node("f", "f", {{1, 2}})},
      {0, 1, 2, 3, 4}, {{1, 1}, {2, 0}}));
  EXPECT_EQ(graph.nodes[1].num_outputs, 3u);
  EXPECT_TRUE(has_elements(graph.nodes[2].inputs, {3}));
  EXPECT_TRUE(has_elements(graph.outputs, {2, 4}));
}

TEST(GraphJson, AcceptsWhatOlderReleasesWrote) {
  json document = chain_graph();
  document["attrs"].erase("device_index");
  document["nodes"][2]["attr"] = document["nodes"][2]["attrs"];
  document["nodes"][2].erase("attrs");
  document["heads"] = {{4, 0}};
  document["attrs"]["other"] = {"list_int", {1, 2}};
  document["metadata"] = "ignored";
  EXPECT_EQ(parse(document).nodes[2].function, "fused_f");
}

TEST(GraphJson, KeepsWhatTheCompilerSaysForReports) {
  json document = chain_graph();
  json& attributes = document["nodes"][2]["attrs"];
  attributes["multiply_adds"] = "115605504";
  attributes["kernel"] = R"({"kernel": "winograd"})";
  attributes["onnx_nodes"] = R"(["conv", "relu"])";
  attributes["hash"] = "8f414479f84e59cc";
  attributes["data_layout"] = "NCHW";
  const Graph graph = parse(document);
  EXPECT_EQ(graph.nodes[2].multiply_adds, "115605504");
  EXPECT_EQ(graph.nodes[2].kernel, R"({"kernel": "winograd"})");
  EXPECT_EQ(graph.nodes[2].onnx_nodes, R"(["conv", "relu"])");
  EXPECT_EQ(graph.nodes[3].onnx_nodes, "");
  EXPECT_EQ(graph.nodes[3].multiply_adds, "");
  EXPECT_EQ(graph.nodes[3].kernel, "");
  EXPECT_THAT(graph.nodes[2].labels,
              ElementsAre(Pair("data_layout", "NCHW"), Pair("hash", "8f414479f84e59cc")));
  EXPECT_THAT(graph.nodes[3].labels, IsEmpty());
}

struct Damage {
  const char* name;
  std::function<void(json&)> apply;
  const char* message;
  ErrorKind code = ErrorKind::kFormat;
};

class DamagedGraph : public testing::TestWithParam<Damage> {};

TEST_P(DamagedGraph, IsRefusedInWords) {
  json document = chain_graph();
  GetParam().apply(document);
  try {
    parse(document);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), GetParam().code);
    EXPECT_THAT(error.what(), HasSubstr("graph file 'g.json'"));
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    , DamagedGraph,
    testing::Values(
        Damage{"NoNodes", [](json& g) { g.erase("nodes"); }, "lacks 'nodes'"},
        Damage{"NodesNoList", [](json& g) { g["nodes"] = 3; }, "nodes is no list"},
        Damage{"UnknownOp", [](json& g) { g["nodes"][2]["op"] = "other"; }, "expected 'null'"},
        Damage{"NoName", [](json& g) { g["nodes"][2].erase("name"); }, "has no member 'name'"},
        Damage{"NoFunction", [](json& g) { g["nodes"][2]["attrs"].erase("func_name"); },
               "has no member 'func_name'"},
        Damage{"StatementNoText", [](json& g) { g["nodes"][2]["attrs"]["multiply_adds"] = 12; },
               "nodes[2].attrs.multiply_adds is no string"},
        Damage{"WrongInputCount", [](json& g) { g["nodes"][2]["attrs"]["num_inputs"] = "3"; },
               "the node lists 2 inputs"},
        Damage{"ReadsALaterNode", [](json& g) { g["nodes"][2]["inputs"][0][0] = 3; },
               "expected 0 to 1"},
        Damage{"NegativeNode", [](json& g) { g["nodes"][2]["inputs"][0][0] = -1; },
               "is -1, expected 0 to 1"},
        Damage{"MissingOutput", [](json& g) { g["nodes"][2]["inputs"][0][1] = 1; },
               "expected 0 to 0"},
        Damage{"FractionalIndex", [](json& g) { g["nodes"][2]["inputs"][0][0] = 0.5; },
               "expected a whole number"},
        Damage{"RowPointerTooShort", [](json& g) { g["node_row_ptr"].erase(0); }, "expected 6"},
        Damage{"RowPointerDisagrees", [](json& g) { g["node_row_ptr"][2] = 3; },
               "node 'w' has 1 outputs"},
        Damage{"HugeOutputCount",
               [](json& g) { g["nodes"][2]["attrs"]["num_outputs"] = "2000000000"; },
               "has 2000000000 outputs"},
        Damage{"OutputCountOverflows",
               [](json& g) { g["nodes"][2]["attrs"]["num_outputs"] = "99999999999999999999"; },
               "expected a number"},
        Damage{"ShapesTooFew", [](json& g) { g["attrs"]["shape"][1].erase(0); },
               "the nodes have 5 outputs"},
        Damage{"NegativeDimension", [](json& g) { g["attrs"]["shape"][1][0][0] = -4; },
               "is -4, expected 0"},
        Damage{"ShapeOverflows",
               [](json& g) {
                 g["attrs"]["shape"][1][0] = {std::int64_t{1} << 40, std::int64_t{1} << 40};
               },
               "too many elements"},
        Damage{"UnknownType", [](json& g) { g["attrs"]["dltype"][1][0] = "complex"; },
               "unknown element type"},
        Damage{"NegativeStorage", [](json& g) { g["attrs"]["storage_id"][1][0] = -1; },
               "is -1, expected 0"},
        Damage{"HugeStorage", [](json& g) { g["attrs"]["storage_id"][1][0] = 1000000; },
               "expected 0 to 4"},
        Damage{"HugeUnsigned",
               [](json& g) {
                 g["attrs"]["storage_id"][1][0] = std::numeric_limits<std::uint64_t>::max();
               },
               "expected a whole number"},
        Damage{"WrongListType", [](json& g) { g["attrs"]["shape"][0] = "list_int"; },
               "is no pair of 'list_shape'"},
        Damage{"InputNotListed", [](json& g) { g["arg_nodes"].erase(1); },
               "does not list the input 'w'"},
        Damage{"ArgumentNoInput", [](json& g) { g["arg_nodes"][1] = 2; }, "which is no input"},
        Damage{"SameInputName", [](json& g) { g["nodes"][1]["name"] = "x"; },
               "second input named 'x'"},
        Damage{"NoOutputs", [](json& g) { g["heads"] = json::array(); }, "no outputs"},
        Damage{"OutputOutOfRange", [](json& g) { g["heads"][0][0] = 5; }, "expected 0 to 4"},
        Damage{"RowCountsOdd", [](json& g) { g["attrs"]["counted_outputs"] = {"list_int", {-1}}; },
               "has 1 elements, expected two for each output"},
        Damage{"RowCountOfNoHead",
               [](json& g) { g["attrs"]["counted_outputs"] = {"list_int", {1, 0}}; },
               "is 1, expected -1 to 0"},
        Damage{"RowCountNoNumber",
               [](json& g) { g["attrs"]["counted_outputs"] = {"list_int", {0, 0}}; },
               "is a head that is no single int64"},
        Damage{"ReshapeChangesSize", [](json& g) { g["attrs"]["shape"][1][3] = {5}; },
               "differ in size"},
        Damage{"OnAnotherGpu", [](json& g) { g["attrs"]["device_index"][1][4] = 8; },
               "device type 8", ErrorKind::kIncompatible},
        Damage{"Texture",
               [](json& g) {
                 g["attrs"]["storage_scope"] = {"list_str", {"", "", "global.texture", "", ""}};
               },
               "global.texture", ErrorKind::kIncompatible}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(GraphJson, SaysWhatAFileThatIsNoGraphIs) {
  auto message = [](std::string_view text) -> std::string {
    try {
      parse_graph(text, "graph file 'g.json'");
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message(""), HasSubstr("is no JSON"));
  EXPECT_THAT(message("\xB7\x9C\x04\x05\x4F\x8D\xE5\xF7"), HasSubstr("swapped"));
  EXPECT_THAT(message("{\"nodes\": ["), HasSubstr("no valid JSON from byte"));
  EXPECT_THAT(message("{}"), HasSubstr("is no graph of TVM's graph executor"));
  EXPECT_THAT(message(std::string(100000, '[')), HasSubstr("is no valid JSON"));
  EXPECT_THAT(message("{\"nodes\":" + std::string(100000, '[') + std::string(100000, ']') + "}"),
              HasSubstr("is no graph"));
}

}  // namespace
}  // namespace run_model
