#include "rpc/executor_module.h"

#include "rpc/debug_executor_module.h"
#include "rpc/graph_executor_module.h"

namespace run_model::rpc {
namespace {

// As with TVM, a client may run a graph, or measure it, without having set an input.
ExecutorOptions client_options() {
  ExecutorOptions options;
  options.require_inputs = false;
  return options;
}

ExecutorOptions debug_options() {
  ExecutorOptions options = client_options();
  options.plan_memory = false;
  return options;
}

}  // namespace

std::shared_ptr<RemoteModule> make_graph_executor(const std::shared_ptr<Module>& library,
                                                  const std::string& graph_json) {
  return std::make_shared<GraphExecutorModule>(
      DebugExecutor(library, graph_json, client_options()));
}

std::shared_ptr<RemoteModule> make_graph_executor(const std::shared_ptr<Module>& library) {
  return std::make_shared<GraphExecutorModule>(DebugExecutor(library, client_options()));
}

std::shared_ptr<RemoteModule> make_debug_executor(const std::shared_ptr<Module>& library,
                                                  const std::string& graph_json) {
  return std::make_shared<DebugExecutorModule>(DebugExecutor(library, graph_json, debug_options()));
}

std::shared_ptr<RemoteModule> make_debug_executor(const std::shared_ptr<Module>& library) {
  return std::make_shared<DebugExecutorModule>(DebugExecutor(library, debug_options()));
}

}  // namespace run_model::rpc
