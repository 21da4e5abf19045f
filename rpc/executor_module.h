// A graph executor as clients see it: TVM's GraphModule.
#pragma once

#include <memory>
#include <string>

#include <run_model/module.h>
#include <run_model/rpc/function.h>

namespace run_model::rpc {

// The executor of a graph that the client has sent as JSON, its parameters still to be set.
std::shared_ptr<RemoteModule> make_graph_executor(const std::shared_ptr<Module>& library,
                                                  const std::string& graph_json);

// The executor of a single-file export, with the parameters that lie in it.
std::shared_ptr<RemoteModule> make_graph_executor(const std::shared_ptr<Module>& library);

// The same with the functions of TVM's debug executor in addition.
std::shared_ptr<RemoteModule> make_debug_executor(const std::shared_ptr<Module>& library,
                                                  const std::string& graph_json);
std::shared_ptr<RemoteModule> make_debug_executor(const std::shared_ptr<Module>& library);

}  // namespace run_model::rpc
