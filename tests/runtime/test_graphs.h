// Small graphs for the tests of what reads and runs them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace run_model::testing_graphs {

using nlohmann::json;

inline json input_node(const std::string& name) {
  return {{"op", "null"}, {"name", name}, {"inputs", json::array()}};
}

inline json call_node(const std::string& name, const std::string& function,
                      const std::vector<std::vector<int>>& inputs, int outputs = 1) {
  json references = json::array();
  for (const auto& input : inputs) references.push_back({input[0], input[1], 0});
  return {{"op", "tvm_op"},
          {"name", name},
          {"inputs", references},
          {"attrs",
           {{"func_name", function},
            {"num_inputs", std::to_string(inputs.size())},
            {"num_outputs", std::to_string(outputs)},
            {"flatten_data", "0"}}}};
}

// One entry for each node output: float32 of shape [4] in the given storages.
inline json graph_of(const std::vector<json>& nodes, const std::vector<int>& storages,
                     const std::vector<std::vector<int>>& heads) {
  json graph;
  graph["nodes"] = nodes;
  graph["arg_nodes"] = json::array();
  graph["node_row_ptr"] = {0};
  int entries = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i]["op"] == "null") graph["arg_nodes"].push_back(i);
    entries += nodes[i].contains("attrs")
                   ? std::stoi(nodes[i]["attrs"]["num_outputs"].get<std::string>())
                   : 1;
    graph["node_row_ptr"].push_back(entries);
  }
  graph["heads"] = json::array();
  for (const auto& head : heads) graph["heads"].push_back({head[0], head[1], 0});
  json shapes = json::array();
  json types = json::array();
  json devices = json::array();
  for (int i = 0; i < entries; ++i) {
    shapes.push_back({4});
    types.push_back("float32");
    devices.push_back(1);
  }
  graph["attrs"] = {{"shape", {"list_shape", shapes}},
                    {"dltype", {"list_str", types}},
                    {"device_index", {"list_int", devices}},
                    {"storage_id", {"list_int", storages}}};
  return graph;
}

// x, w → f(x, w) → reshape → g → output; the result of f is overwritten by nothing.
inline json chain_graph() {
  return graph_of({input_node("x"), input_node("w"), call_node("f", "fused_f", {{0, 0}, {1, 0}}),
                   call_node("reshape", "__nop", {{2, 0}}), call_node("g", "fused_g", {{3, 0}})},
                  {0, 1, 2, 2, 3}, {{4, 0}});
}

}  // namespace run_model::testing_graphs
