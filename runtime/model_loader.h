// Brings the pieces of a compiled model together and checks them against each other.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include <run_model/graph.h>
#include <run_model/graph_executor.h>
#include <run_model/module.h>
#include "runtime/entry_storage.h"
#include "runtime/param_binding.h"
#include "runtime/storage_plan.h"

namespace run_model {

struct LoadedModel {
  std::shared_ptr<Module> module;
  Graph graph;
  StoragePlan plan;
  ParamBinding params;
  TensorConvention convention;
};

// Reads the graph and the parameters from their files, or from the library where no file is named.
// Whether the library has the graph's functions is left to the caller, who looks them up anyway.
// `on_loaded`, if set, is called before the parameters are bound. Throws as GraphExecutor's
// constructor does.
LoadedModel load_model(const ModelFiles& files, const std::function<void()>& on_loaded = {});

// Takes the graph and the parameters from the library, a single-file export.
LoadedModel load_model(std::shared_ptr<Module> library,
                       const std::function<void()>& on_loaded = {});

// Takes the graph from `graph_json`, and the parameters from the library where it is its own graph.
LoadedModel load_model(std::shared_ptr<Module> library, std::string_view graph_json,
                       const std::function<void()>& on_loaded = {});

}  // namespace run_model
