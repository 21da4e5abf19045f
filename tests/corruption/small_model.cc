#include "tests/corruption/small_model.h"

#define XXH_INLINE_ALL  // the library itself is not linked
#include <xxhash.h>

#include <cstdio>
#include <cstring>

#include "tests/runtime/test_graphs.h"
#include "tests/runtime/test_params.h"

namespace run_model::corruption {

using nlohmann::json;
using testing_graphs::call_node;
using testing_graphs::input_node;
using testing_params::put;

namespace {

std::string bytes_of(const Floats& values) {
  return {reinterpret_cast<const char*>(values.data()), sizeof(values)};
}

std::string record(const Floats& values) {
  return testing_params::tensor_record({4}, {kDLFloat, 32, 1}, bytes_of(values));
}

void put_string(std::string& out, const std::string& text) {
  put<std::uint64_t>(out, text.size());
  out += text;
}

json describe(const std::string& content) {
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(content.data(), content.size())));
  return {{"bytes", content.size()}, {"xxh3_64", digits}};
}

}  // namespace

json small_graph() {
  return testing_graphs::graph_of(
      {input_node("x"), input_node("w"), input_node("b"),
       call_node("product", "tvmgen_default_fused_multiply", {{0, 0}, {1, 0}}),
       call_node("view", "__nop", {{3, 0}}),
       call_node("sum", "tvmgen_default_fused_add", {{3, 0}, {2, 0}})},
      {0, 1, 2, 3, 3, 4}, {{4, 0}, {5, 0}});
}

std::string small_params() {
  auto padding = [](std::size_t bytes) {
    return testing_params::tensor_record({static_cast<std::int64_t>(bytes)}, {kDLUInt, 8, 1},
                                         std::string(bytes, '\0'));
  };
  return testing_params::params_bytes(
      {{"__align0", padding(3)}, {"w", record(kW)}, {"__align1", padding(17)}, {"b", record(kB)}});
}

std::string small_library() { return TemporaryFolder::read(CORRUPTION_MODEL); }

json small_metadata(bool with_checksums) {
  auto tensor = [](const char* name) {
    return json{{"name", name}, {"shape", {4}}, {"dtype", "float32"}};
  };
  json metadata{{"schema_version", 1},
                {"model", "small"},
                {"target", {{"name", "native"}, {"tvm", "llvm"}, {"machine", RUN_MODEL_MACHINE}}},
                {"tvm_version", "0.18.0"},
                {"inputs", {tensor("x")}},
                {"outputs", {tensor("output_0"), tensor("output_1")}},
                {"preprocessing",
                 {{"resizer", "pil-bilinear"},
                  {"fit", "crop"},
                  {"resize", 256},
                  {"crop", 224},
                  {"color_order", "BGR"},
                  {"divide_by", 1.0},
                  {"mean", {104, 117, 123}},
                  {"std", {1, 1, 1}}}},
                {"source", {{"onnx_sha256", std::string(64, 'a')}, {"onnx_opset", 13}}}};
  if (with_checksums) {
    metadata["files"] = {{"model.so", describe(small_library())},
                         {"model.json", describe(small_graph().dump())},
                         {"model.params", describe(small_params())}};
  }
  return metadata;
}

std::string small_device_blob() {
  std::string factory;
  put_string(factory, small_graph().dump());
  put<std::uint64_t>(factory, 2);
  put<std::uint64_t>(factory, 2);
  put_string(factory, "w");
  put_string(factory, "b");
  factory += record(kW) + record(kB);
  put_string(factory, "default");

  std::string modules;
  put<std::uint64_t>(modules, 3);
  put_string(modules, "GraphExecutorFactory");
  modules += factory;
  put_string(modules, "_lib");
  put_string(modules, "_import_tree");
  for (const std::vector<std::uint64_t>& list :
       {std::vector<std::uint64_t>{0, 1, 1}, std::vector<std::uint64_t>{1}}) {
    put<std::uint64_t>(modules, list.size());
    for (std::uint64_t value : list) put(modules, value);
  }

  std::string blob;
  put<std::uint64_t>(blob, modules.size());
  return blob + modules;
}

}  // namespace run_model::corruption
