#include "rpc/functions/builtin.h"

namespace run_model::rpc {

void add_builtin_functions(Registry& registry, SessionFolder& folder) {
  add_file_functions(registry, folder);
  add_module_functions(registry, folder);
  add_graph_executor(registry);
  add_debug_executor(registry);
  add_time_evaluator(registry);
  add_random_fill(registry);
  add_thread_functions(registry);
  add_copy_limit(registry);
}

}  // namespace run_model::rpc
