#include "run_model/run_model/inspect.h"
#include "run_model/shared/json_values.h"

namespace run_model {
namespace {

Json tensors_json(const std::vector<TensorInfo>& tensors) {
  Json list = Json::array();
  for (const TensorInfo& tensor : tensors) list.push_back(tensor_json(tensor));
  return list;
}

Json library_json(const LibraryFacts& library) {
  return {{"bytes", library.bytes},
          {"machine", library.machine},
          {"triple", text_or_null(library.triple)},
          {"compiled_by", library_kind_name(library.kind)},
          {"glibc", text_or_null(library.glibc)},
          {"needed", library.needed},
          {"missing_symbols", library.missing},
          {"functions", library.functions},
          {"single_file", library.single_file}};
}

Json graph_json(const GraphFacts& graph) {
  return {{"nodes", graph.nodes},
          {"function_calls", graph.function_calls},
          {"activation_bytes", graph.activation_bytes},
          {"params", graph.params},
          {"param_bytes", graph.param_bytes},
          {"inputs", tensors_json(graph.inputs)},
          {"outputs", tensors_json(graph.outputs)}};
}

}  // namespace

std::string inspection_json(const Inspection& inspection) {
  const Package& package = inspection.package;
  Json json = {{"schema_version", kReportSchema},
               {"model", package.model},
               {"artifact", package_json(package)},
               {"library", library_json(inspection.library)}};
  json["graph"] = inspection.has_graph ? graph_json(inspection.graph) : Json();
  const bool described = package.metadata && package.metadata->preprocessing;
  json["preprocessing"] = described ? preprocessing_json(*package.metadata->preprocessing) : Json();
  json["runs_here"] = inspection.problems.empty();
  json["problems"] = inspection.problems;
  return json_text(json);
}

}  // namespace run_model
