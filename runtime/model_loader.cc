#include "runtime/model_loader.h"

#include <optional>
#include <string>
#include <string_view>

#include "runtime/as_text.h"
#include "runtime/error.h"
#include "runtime/linked_params.h"
#include "runtime/mapped_file.h"
#include "runtime/params_file.h"
#include "runtime/quoted.h"

namespace run_model {
LoadedModel load_model(const ModelFiles& files, const std::function<void()>& on_loaded) {
  LoadedModel model;
  std::string graph_source;
  std::string graph_text;  // of a single-file library
  std::shared_ptr<const MappedFile> graph_file;
  // Data files come first: loading a library can already run code of it.
  if (!files.graph.empty()) {
    graph_file = MappedFile::open(files.graph, "graph file");
    graph_source = "graph file " + path_in_quotes(files.graph);
    model.graph = parse_graph(as_text(graph_file->bytes()), graph_source);
  }
  std::shared_ptr<const MappedFile> params_file;
  std::vector<Param> params;
  std::string params_source;
  if (!files.params.empty()) {
    params_file = MappedFile::open(files.params, "parameter file");
    params_source = "parameter file " + path_in_quotes(files.params);
    params = parse_params(params_file->bytes(), params_source);
  }

  model.module = Module::open(files.library);
  const std::optional<EmbeddedGraph>& embedded = model.module->embedded_graph();
  std::string library = "library " + path_in_quotes(files.library);
  if (files.graph.empty()) {
    if (!embedded) {
      throw Error(ErrorCode::kMismatch,
                  library + " holds no graph, expected a single-file export of a graph executor",
                  "give the model's .json and .params files too");
    }
    graph_source = "the graph inside " + library;
    model.graph = parse_graph(embedded->graph_json, graph_source);
  }
  if (files.params.empty() && embedded) {
    params_source = library;
    params = parse_param_records(embedded->param_names, embedded->param_records,
                                 "the parameters inside " + library);
    params_file = embedded->file;
  }
  model.plan = plan_storage(model.graph, graph_source);
  if (on_loaded) on_loaded();
  model.params = bind_params(model.graph, params, params_file, params_source);
  bind_linked_params(model.module, model.graph, model.params);
  return model;
}

}  // namespace run_model
