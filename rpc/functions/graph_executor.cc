#include "rpc/executor_module.h"
#include "rpc/functions/builtin.h"
#include "rpc/functions/create_executor.h"

namespace run_model::rpc {

void add_graph_executor(Registry& registry) {
  registry.add("tvm.graph_executor.create", [](const Arguments& arguments) -> Value {
    const std::shared_ptr<Module> library = executor_library(arguments);
    return make_graph_executor(library, arguments.text(0));
  });
}

}  // namespace run_model::rpc
