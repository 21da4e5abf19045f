// Brings the pieces of a compiled model together and checks them against each other.
#pragma once

#include <exception>
#include <memory>
#include <string_view>
#include <vector>

#include <run_model/graph.h>
#include <run_model/graph_executor.h>
#include <run_model/module.h>
#include "runtime/loading/param_binding.h"
#include "runtime/memory/entry_storage.h"
#include "runtime/memory/storage_plan.h"

namespace run_model {

class RelaxInterpreter;
class RelaxSource;

struct LoadedModel {
  std::shared_ptr<Module> module;
  Graph graph;
  StoragePlan plan;
  ParamBinding params;
  TensorConvention convention;
  std::shared_ptr<RelaxSource> relax;             // what it was made of; null for graphs
  std::shared_ptr<RelaxInterpreter> interpreter;  // null unless it is interpreted
  std::exception_ptr failure{};  // why it cannot run inputs of these shapes; null where it can
  GraphDevices devices{};        // that the graph places entries on
};

// Reads the graph and the parameters from their files, or from the library where no file is named.
// Whether the library has the graph's functions is left to the caller, who looks them up anyway.
// Throws as GraphExecutor's constructor does.
LoadedModel load_model(const ModelFiles& files, const ExecutorOptions& options = {});

// Takes the graph and the parameters from the library, a single-file export. `arrays` as in
// ModelFiles.
LoadedModel load_model(std::shared_ptr<Module> library, const ExecutorOptions& options = {},
                       const std::vector<NamedArray>& arrays = {});

// Takes the graph from `graph_json`, and the parameters from the library where it is its own graph.
LoadedModel load_model(std::shared_ptr<Module> library, std::string_view graph_json,
                       const ExecutorOptions& options = {});

}  // namespace run_model
