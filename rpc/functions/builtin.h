// The functions that every session offers, by group; together they are what TVM's clients ask for.
#pragma once

#include <run_model/rpc/function.h>
#include "rpc/session_folder.h"

namespace run_model::rpc {

// tvm.rpc.server.upload, download, remove, listdir.
void add_file_functions(Registry& registry, SessionFolder& folder);

// tvm.rpc.server.load_module, ModuleGetFunction, ImportModule, download_linked_module.
void add_module_functions(Registry& registry, SessionFolder& folder);

// tvm.graph_executor.create, tvm.graph_executor_debug.create.
void add_executors(Registry& registry);

// runtime.RPCTimeEvaluator, cache_flush_cpu_non_first_arg.
void add_time_evaluator(Registry& registry);

// tvm.contrib.random.random_fill, random_fill_for_measure.
void add_random_fill(Registry& registry);

// runtime.config_threadpool, runtime.NumThreads.
void add_thread_functions(Registry& registry);

// tvm.rpc.server.GetCRTMaxPacketSize.
void add_copy_limit(Registry& registry);

// All of the above. `folder` outlives the registry.
void add_builtin_functions(Registry& registry, SessionFolder& folder);

}  // namespace run_model::rpc
