#include "run_model/run_model/inspect/inspect.h"

#include <array>
#include <cstdio>

#include "base/text.h"
#include "run_model/run_model/report/artifact_json.h"
#include "run_model/shared/formatted.h"

namespace run_model {
namespace {

// "Name:      value", values in one column.
std::string line(const std::string& name, const std::string& value) {
  constexpr std::size_t kColumn = 14;
  std::string text = name + ":";
  text.append(text.size() < kColumn ? kColumn - text.size() : 1, ' ');
  return text + value + "\n";
}

std::string list_or_none(const std::vector<std::string>& items) {
  return items.empty() ? "none" : comma_list(items);
}

std::string file_text(const std::filesystem::path& path) {
  return path.empty() ? "none" : shown_path(path);
}

std::string tensor_text(const TensorInfo& info) {
  return info.name + "  " + tensor_form_name(info.dtype, info.shape);
}

std::string triple(const std::array<float, 3>& values) {
  return formatted("%g %g %g", static_cast<double>(values[0]), static_cast<double>(values[1]),
                   static_cast<double>(values[2]));
}

std::string preprocessing_text(const Preprocessing& preprocessing) {
  std::string text(resizer_name(preprocessing.resizer));
  text += ", " + std::string(fit_name(preprocessing.fit));
  if (crops(preprocessing.fit)) {
    text +=
        " " + std::to_string(preprocessing.resize) + " to " + std::to_string(preprocessing.crop);
  }
  return text + ", " + std::string(color_order_name(preprocessing.color_order)) + ", divide by " +
         formatted("%g", static_cast<double>(preprocessing.divide_by)) + ", mean " +
         triple(preprocessing.mean) + ", std " + triple(preprocessing.std);
}

std::string library_lines(const Inspection& inspection) {
  const LibraryFacts& library = inspection.library;
  const ModelFiles& files = inspection.package.files;
  std::string text =
      line("Library", shown_path(files.library) + " (" + bytes_text(library.bytes) +
                          (library.single_file ? ", graph and parameters inside)" : ")"));
  text += line("Machine",
               library.machine + (library.triple.empty() ? "" : " (" + library.triple + ")"));
  text += line("Compiled by", library_kind_name(library.kind));
  text += line("C library", library.glibc.empty() ? "any" : "glibc " + library.glibc + " or later");
  text += line("Needs", list_or_none(library.needed));
  if (!library.missing.empty()) text += line("Missing", list_or_none(library.missing));
  text += line("Functions", std::to_string(library.functions));
  if (library.callable.empty()) return text;
  return text + line("--function", comma_list(library.callable, [](const std::string& name) {
                       return in_quotes(name);
                     }));
}

std::string graph_lines(const Inspection& inspection) {
  const GraphFacts& graph = inspection.graph;
  std::string text = line("Graph", std::to_string(graph.nodes) + " nodes, " +
                                       std::to_string(graph.function_calls) + " function calls, " +
                                       bytes_text(graph.activation_bytes) + " of activations");
  text +=
      line("Parameters", std::to_string(graph.params) + " (" + bytes_text(graph.param_bytes) + ")");
  for (const TensorInfo& input : graph.inputs) text += line("Input", tensor_text(input));
  for (const TensorInfo& output : graph.outputs) text += line("Output", tensor_text(output));
  return text;
}

std::string metadata_lines(const Package& package) {
  std::string text = line("Metadata", file_text(package.metadata_path));
  if (!package.metadata) return text;
  const Metadata& metadata = *package.metadata;
  if (!metadata.target.empty())
    text += line("Target", package.target + " (" + metadata.target + ")");
  if (metadata.features) text += line("CPU features", list_or_none(*metadata.features));
  if (!metadata.tvm_version.empty()) text += line("TVM", metadata.tvm_version);
  if (metadata.preprocessing) {
    text += line("Pictures", preprocessing_text(*metadata.preprocessing));
  }
  return text;
}

}  // namespace

std::string inspection_text(const Inspection& inspection) {
  std::string text = line("Model", inspection.package.model);
  text += library_lines(inspection);
  text += line("Graph file", file_text(inspection.package.files.graph));
  text += line("Params file", file_text(inspection.package.files.params));
  if (inspection.has_graph) text += graph_lines(inspection);
  text += metadata_lines(inspection.package);
  if (inspection.problems.empty()) {
    text += line("Runs here", "yes, as far as the files tell");
    for (const std::string& unknown : inspection.unknown) text += "  " + unknown + "\n";
    return text;
  }
  text += line("Runs here", "no");
  for (const std::string& problem : inspection.problems) text += "  " + problem + "\n";
  return text;
}

namespace {

Json library_json(const LibraryFacts& library) {
  return Json::object({{"bytes", library.bytes},
                       {"machine", library.machine},
                       {"triple", text_or_null(library.triple)},
                       {"compiled_by", library_kind_name(library.kind)},
                       {"glibc", text_or_null(library.glibc)},
                       {"needed", library.needed},
                       {"missing_symbols", library.missing},
                       {"functions", library.functions},
                       {"callable", library.callable},
                       {"single_file", library.single_file}});
}

Json graph_json(const GraphFacts& graph) {
  return Json::object({{"nodes", graph.nodes},
                       {"function_calls", graph.function_calls},
                       {"activation_bytes", graph.activation_bytes},
                       {"params", graph.params},
                       {"param_bytes", graph.param_bytes},
                       {"inputs", tensors_json(graph.inputs)},
                       {"outputs", tensors_json(graph.outputs)}});
}

}  // namespace

std::string inspection_json(const Inspection& inspection) {
  const Package& package = inspection.package;
  Json json = Json::object({{"schema_version", kReportSchema},
                            {"model", package.model},
                            {"artifact", package_json(package)},
                            {"library", library_json(inspection.library)}});
  json.put("graph", inspection.has_graph ? graph_json(inspection.graph) : Json());
  const bool described = package.metadata && package.metadata->preprocessing;
  json.put("preprocessing",
           described ? preprocessing_json(*package.metadata->preprocessing) : Json());
  json.put("runs_here", inspection.problems.empty());
  json.put("problems", inspection.problems);
  json.put("unknown", inspection.unknown);
  return json.text();
}

}  // namespace run_model
