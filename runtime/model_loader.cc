#include "runtime/model_loader.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/mapped_file.h"
#include "base/text.h"
#include "runtime/device_blob.h"
#include "runtime/model_library.h"
#include "runtime/param_binding.h"
#include "runtime/params_file.h"
#include "runtime/relax/relax_model.h"

namespace run_model {
namespace {

// Parameters as they were read, and the file that their bytes lie in.
struct ReadParams {
  std::vector<Param> params;
  std::shared_ptr<const MappedFile> file;
  std::string source;
};

std::string library_name(const Module& library) {
  return "library " + path_in_quotes(library.path());
}

ReadParams params_from_file(const std::filesystem::path& path) {
  ReadParams read;
  read.file = MappedFile::open(path, "parameter file");
  read.source = "parameter file " + path_in_quotes(path);
  read.params = parse_params(read.file->bytes(), read.source);
  return read;
}

ReadParams params_from_library(const Module& library, const EmbeddedGraph& embedded) {
  const std::string source = library_name(library);
  return {embedded.params, embedded.file, source};
}

// The library as one that holds a Relax executable, or null.
const ModelLibrary* relax_library(const Module& library) {
  const ModelLibrary* model = as_model_library(library);
  return model != nullptr && model->relax_executable() != nullptr ? model : nullptr;
}

const EmbeddedGraph& graph_of_library(const Module& library) {
  const EmbeddedGraph* embedded = embedded_graph(library);
  if (embedded == nullptr) {
    throw Error(ErrorKind::kMismatch,
                library_name(library) +
                    " holds no graph, expected a single-file export of a graph executor",
                "give the model's .json and .params files too");
  }
  return *embedded;
}

// The function `main` of the executable in the library, as a graph.
LoadedModel load_relax(std::shared_ptr<Module> module, const ModelLibrary& library,
                       const std::function<void()>& on_loaded) {
  const std::string source = library_name(library);
  const RelaxExecutable& executable = *library.relax_executable();
  const RelaxFunction& function = choose_function(executable, "", source);
  const std::vector<RelaxInput> inputs = input_forms(executable, function);
  std::vector<std::vector<std::int64_t>> shapes;
  for (const RelaxInput& input : inputs) {
    if (!input.is_static()) {
      throw Error(ErrorKind::kIncompatible,
                  source + " takes " + in_quotes(input.name) + " as " + form_name(input) +
                      ", whose dimensions are not all numbers",
                  "export it for one shape");
    }
    std::vector<std::int64_t>& shape = shapes.emplace_back();
    for (const RelaxDimension& dim : input.dims) shape.push_back(dim.number);
  }
  RelaxTrace trace = trace_function(executable, function, inputs, shapes, library);
  LoadedModel model{std::move(module), std::move(trace.graph), {}, {}, {}};
  model.convention.strides = true;
  if (executable.bool_is_a_type) model.convention.bool_type = kFfiBoolType;
  model.plan = plan_storage(model.graph, source);
  if (on_loaded) on_loaded();
  model.params = bind_params(model.graph, trace.constants, executable.file, source);
  return model;
}

LoadedModel fit_together(std::shared_ptr<Module> library, Graph graph,
                         const std::string& graph_source, const ReadParams& read,
                         const std::function<void()>& on_loaded) {
  LoadedModel model{std::move(library), std::move(graph), {}, {}, {}};
  model.plan = plan_storage(model.graph, graph_source);
  if (on_loaded) on_loaded();
  model.params = bind_params(model.graph, read.params, read.file, read.source);
  bind_linked_params(model.module, model.graph, model.params);
  return model;
}

}  // namespace

LoadedModel load_model(const ModelFiles& files, const std::function<void()>& on_loaded) {
  // Data files come first: loading a library can already run code of it.
  Graph graph;
  std::string graph_source;
  if (!files.graph.empty()) {
    const auto file = MappedFile::open(files.graph, "graph file");
    graph_source = "graph file " + path_in_quotes(files.graph);
    graph = parse_graph(as_text(file->bytes()), graph_source);
  }
  ReadParams params;
  if (!files.params.empty()) params = params_from_file(files.params);

  std::shared_ptr<Module> library = Module::open(files.library);
  const ModelLibrary* relax = relax_library(*library);
  if (files.graph.empty() && relax != nullptr) return load_relax(library, *relax, on_loaded);
  if (files.graph.empty()) {
    graph_source = "the graph inside " + library_name(*library);
    graph = parse_graph(graph_of_library(*library).graph_json, graph_source);
  }
  if (files.params.empty()) {
    const EmbeddedGraph* embedded = embedded_graph(*library);
    if (embedded != nullptr) params = params_from_library(*library, *embedded);
  }
  return fit_together(std::move(library), std::move(graph), graph_source, params, on_loaded);
}

LoadedModel load_model(std::shared_ptr<Module> library, const std::function<void()>& on_loaded) {
  if (const ModelLibrary* relax = relax_library(*library)) {
    return load_relax(library, *relax, on_loaded);
  }
  const std::string source = "the graph inside " + library_name(*library);
  const EmbeddedGraph& embedded = graph_of_library(*library);
  Graph graph = parse_graph(embedded.graph_json, source);
  const ReadParams params = params_from_library(*library, embedded);
  return fit_together(std::move(library), std::move(graph), source, params, on_loaded);
}

LoadedModel load_model(std::shared_ptr<Module> library, std::string_view graph_json,
                       const std::function<void()>& on_loaded) {
  const std::string source = "the graph for " + library_name(*library);
  Graph graph = parse_graph(graph_json, source);
  ReadParams params;
  const EmbeddedGraph* embedded = embedded_graph(*library);
  if (embedded != nullptr && embedded->graph_json == graph_json) {
    params = params_from_library(*library, *embedded);
  }
  return fit_together(std::move(library), std::move(graph), source, params, on_loaded);
}

}  // namespace run_model
