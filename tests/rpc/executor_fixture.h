// A small graph on the stand-in library of the executor's own tests, called as a client calls it.
#pragma once

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <run_model/module.h>
#include <run_model/rpc/function.h>
#include "rpc/modules/graph_executor_module.h"
#include "tests/runtime/test_graphs.h"
#include "tests/runtime/test_params.h"

namespace run_model::rpc::testing_executor {

using testing_graphs::call_node;
using testing_graphs::graph_of;
using testing_graphs::input_node;

inline constexpr DLDataType kFloat32{kDLFloat, 32, 1};

inline std::shared_ptr<Module> library() { return Module::open(EXECUTOR_MODEL); }

// a = x + w; r = a under its own shape; two outputs of b: 2 r and -r. The graph's output is -r.
inline std::string graph() {
  auto graph =
      graph_of({input_node("x"), input_node("w"), call_node("a", "fused_add", {{0, 0}, {1, 0}}),
                call_node("r", "__nop", {{2, 0}}), call_node("b", "fused_both", {{3, 0}}, 2)},
               {0, 1, 2, 2, 3, 4}, {{4, 1}});
  graph["nodes"][2]["attrs"]["hash"] = "37f27536f17557a3";
  graph["nodes"][2]["attrs"]["data_layout"] = "NCHW";
  return graph.dump();
}

inline Tensor vector_of(const std::vector<float>& values) {
  Tensor tensor = Tensor::empty({static_cast<std::int64_t>(values.size())}, kFloat32);
  std::copy(values.begin(), values.end(), tensor.elements<float>().begin());
  return tensor;
}

inline Value given(const std::vector<float>& values) { return TensorArgument{vector_of(values)}; }

inline std::vector<float> values_of(const Tensor& tensor) {
  const auto elements = tensor.elements<float>();
  return {elements.begin(), elements.end()};
}

inline std::vector<float> values_of(const Value& value) {
  return values_of(std::get<ArrayResult>(value).tensor);
}

inline Value call(RemoteModule& module, const std::string& function,
                  const std::vector<Value>& arguments) {
  const FunctionPointer found = module.find(function);
  if (found == nullptr) throw std::logic_error("no function " + function);
  return found->call(arguments);
}

inline Value call(const std::shared_ptr<RemoteModule>& module, const std::string& function,
                  const std::vector<Value>& arguments = {}) {
  return call(*module, function, arguments);
}

inline Value bytes(const std::string& content) {
  return Bytes::copy_of(std::as_bytes(std::span(content)));
}

inline Value number(std::int64_t value) { return value; }

}  // namespace run_model::rpc::testing_executor
