// Executors of small graphs on the stand-in library, for the tests of what runs them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <run_model/debug_executor.h>
#include <run_model/error.h>
#include <run_model/graph_executor.h>
#include "tests/runtime/test_graphs.h"
#include "tests/runtime/test_params.h"
#include "tests/temporary_folder.h"

namespace run_model {

namespace fs = std::filesystem;
using testing_graphs::call_node;
using testing_graphs::graph_of;
using testing_graphs::input_node;
using testing_graphs::json;

inline const DLDataType kFloat32 = parse_dtype("float32");

inline Tensor vector_of(std::vector<float> values) {
  Tensor tensor = Tensor::empty({static_cast<std::int64_t>(values.size())}, kFloat32);
  std::copy(values.begin(), values.end(), tensor.elements<float>().begin());
  return tensor;
}

inline std::vector<float> values_of(const Tensor& tensor) {
  auto elements = tensor.elements<float>();
  return {elements.begin(), elements.end()};
}

class GraphExecutorTest : public testing::Test {
 protected:
  ModelFiles files(const json& graph, const std::string& params) {
    ModelFiles files{EXECUTOR_MODEL, directory_ / "model.json", {}};
    std::ofstream(files.graph) << graph.dump();
    if (!params.empty()) {
      files.params = directory_ / "model.params";
      std::ofstream(files.params, std::ios::binary) << params;
    }
    return files;
  }

  GraphExecutor make(const json& graph, const std::string& params = "") {
    return GraphExecutor(files(graph, params));
  }
  DebugExecutor make_debug(const json& graph, const std::string& params = "") {
    return DebugExecutor(files(graph, params));
  }

  // y = x + w with w = (1, 2, 3, 4) from the parameter file.
  static json add_graph() {
    return graph_of(
        {input_node("x"), input_node("w"), call_node("y", "fused_add", {{0, 0}, {1, 0}})},
        {0, 1, 2}, {{2, 0}});
  }
  static std::string add_params(bool aligned) {
    return testing_params::float_params({{"w", {1, 2, 3, 4}}}, aligned);
  }

  const TemporaryFolder directory_;
};

}  // namespace run_model
