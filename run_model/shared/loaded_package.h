// An artifact that is ready to run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <run_model/debug_executor.h>
#include <run_model/package.h>
#include "run_model/shared/memory_stages.h"
#include "run_model/shared/thread_plan.h"

namespace run_model {

struct LoadedPackage {
  Package package;
  ThreadPlan thread_plan;
  MemoryStages memory;       // as far as loading goes
  double load_milliseconds;  // finding, checking and loading it
  DebugExecutor executor;
  std::shared_ptr<ThreadPool> threads;  // that the executor runs on
};

struct LoadOptions {
  bool watch_memory = false;        // mark the stages up to kStageParametersBound
  bool plan_memory = true;          // as in ExecutorOptions
  std::string function{};           // likewise
  std::vector<DLDevice> devices{};  // likewise
  std::function<std::vector<TensorInfo>()> given_inputs{};  // likewise
};

// Finds, checks and loads an artifact, to run on threads that are started as make_thread_plan() has
// it. Throws as open_package, make_thread_plan and GraphExecutor do, and Error(kMismatch) when the
// metadata describes other inputs or outputs than the graph has.
LoadedPackage load_package(const PackageRequest& request, const ThreadSettings& threading,
                           const LoadOptions& load = {});

// The outputs as they are now, which further runs leave alone.
std::vector<Tensor> copies_of_outputs(const GraphExecutor& executor);

bool same_bytes(const Tensor& a, const Tensor& b);

// Writes all outputs to an .npz file as output_0, output_1 … Throws Error(kFile).
void save_outputs(const GraphExecutor& executor, const std::filesystem::path& path);

}  // namespace run_model
