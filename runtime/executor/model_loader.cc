#include "runtime/executor/model_loader.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include "base/mapped_file.h"
#include "base/text.h"
#include "runtime/executor/graph_devices.h"
#include "runtime/loading/device_blob.h"
#include "runtime/loading/model_library.h"
#include "runtime/loading/param_binding.h"
#include "runtime/loading/params_file.h"
#include "runtime/relax/relax_source.h"

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

bool holds_relax(const Module& library) {
  const ModelLibrary* model = as_model_library(library);
  return model != nullptr && model->relax_executable() != nullptr;
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

void refuse_gpu_library(const Module& library) {
  const ModelLibrary* model = as_model_library(library);
  if (model != nullptr) refuse_device_codes(model->device_codes(), library_name(library));
}

LoadedModel load_relax(std::shared_ptr<Module> library, const std::vector<NamedArray>& arrays,
                       const ExecutorOptions& options) {
  refuse_gpu_library(*library);
  const auto source = std::make_shared<RelaxSource>(std::move(library), options.function, arrays,
                                                    options.given_inputs);
  if (options.on_loaded) options.on_loaded();
  return source->model_for(source->least_shapes());
}

// What only libraries with an executable have.
void refuse_relax_options(const ExecutorOptions& options, const std::string& source) {
  if (options.function.empty()) return;
  throw Error(ErrorKind::kMismatch,
              source + " holds a graph, which has no functions by name, expected " +
                  in_quotes(options.function),
              "leave the function's name out");
}

LoadedModel fit_together(std::shared_ptr<Module> library, Graph graph,
                         const std::string& graph_source, const ReadParams& read,
                         const ExecutorOptions& options) {
  refuse_relax_options(options, library_name(*library));
  LoadedModel model{std::move(library), std::move(graph), {}, {}, {}, {}, {}, {}};
  model.devices = open_graph_devices(model.graph, *model.module, options.devices);
  model.plan = plan_storage(model.graph, graph_source);
  if (options.on_loaded) options.on_loaded();
  model.params = bind_params(model.graph, read.params, read.file, read.source);
  bind_linked_params(model.module, model.graph, model.params);
  return model;
}

}  // namespace

LoadedModel load_model(const ModelFiles& files, const ExecutorOptions& options) {
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
  if (files.graph.empty() && holds_relax(*library)) {
    return load_relax(std::move(library), files.arrays, options);
  }
  if (files.graph.empty()) {
    graph_source = "the graph inside " + library_name(*library);
    graph = parse_graph(graph_of_library(*library).graph_json, graph_source);
  }
  if (files.params.empty()) {
    const EmbeddedGraph* embedded = embedded_graph(*library);
    if (embedded != nullptr) params = params_from_library(*library, *embedded);
  }
  return fit_together(std::move(library), std::move(graph), graph_source, params, options);
}

LoadedModel load_model(std::shared_ptr<Module> library, const ExecutorOptions& options,
                       const std::vector<NamedArray>& arrays) {
  if (holds_relax(*library)) return load_relax(std::move(library), arrays, options);
  const std::string source = "the graph inside " + library_name(*library);
  const EmbeddedGraph& embedded = graph_of_library(*library);
  Graph graph = parse_graph(embedded.graph_json, source);
  const ReadParams params = params_from_library(*library, embedded);
  return fit_together(std::move(library), std::move(graph), source, params, options);
}

LoadedModel load_model(std::shared_ptr<Module> library, std::string_view graph_json,
                       const ExecutorOptions& options) {
  const std::string source = "the graph for " + library_name(*library);
  Graph graph = parse_graph(graph_json, source);
  ReadParams params;
  const EmbeddedGraph* embedded = embedded_graph(*library);
  if (embedded != nullptr && embedded->graph_json == graph_json) {
    params = params_from_library(*library, *embedded);
  }
  return fit_together(std::move(library), std::move(graph), source, params, options);
}

}  // namespace run_model
