// tvm.graph_executor.create and tvm.graph_executor_debug.create.
#include <memory>
#include <string>

#include <run_model/error.h>
#include "rpc/executor_module.h"
#include "rpc/functions/builtin.h"
#include "rpc/graph_executor_module.h"
#include "rpc/library_module.h"

namespace run_model::rpc {
namespace {

// Checks what both take: the graph as JSON, its library, and pairs of numbers of devices, at least
// one, all of which have to be the CPU. Gives the library.
std::shared_ptr<Module> executor_library(const Arguments& arguments) {
  arguments.text(0);
  const auto library = std::dynamic_pointer_cast<LibraryModule>(arguments.module(1));
  if (library == nullptr) {
    arguments.fail(
        1, "a library that load_module gave (it is of kind " + arguments.module(1)->kind() + ")");
  }
  if (arguments.size() < 4 || arguments.size() % 2 != 0) {
    throw Error(ErrorKind::kMismatch,
                "an executor is made of a graph, a library and two numbers for each device, but " +
                    std::to_string(arguments.size()) + " arguments were given");
  }
  for (std::size_t i = 2; i < arguments.size(); i += 2) check_cpu_numbers(arguments, i);
  return library->library();
}

}  // namespace

void add_graph_executor(Registry& registry) {
  registry.add("tvm.graph_executor.create", [](const Arguments& arguments) -> Value {
    return make_graph_executor(executor_library(arguments), arguments.text(0));
  });
}

void add_debug_executor(Registry& registry) {
  registry.add("tvm.graph_executor_debug.create", [](const Arguments& arguments) -> Value {
    return make_debug_executor(executor_library(arguments), arguments.text(0));
  });
}

}  // namespace run_model::rpc
