#include "run_model/shared/loaded_package.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <run_model/npz.h>
#include "run_model/shared/stopwatch.h"

namespace run_model {
namespace {

// A sweep sets threads and CPUs itself, among all those that the process may use.
ThreadSettings before_sweep() { return {.threads = 1, .cluster = ClusterChoice::kAll}; }

}  // namespace

LoadedPackage load_package(const PackageRequest& request, const ThreadSettings& threading,
                           const LoadOptions& load) {
  Stopwatch stopwatch;
  MemoryStages memory(load.watch_memory);
  memory.mark(kStageStart);
  Package package = open_package(request);
  VLOG(1) << "library " << package.files.library << ", target '" << package.target << "'";

  ExecutorOptions options;
  ThreadPlan plan = make_thread_plan(threading.sweep ? before_sweep() : threading);
  if (threading.sweep) plan.reason = "for the first run, before the sweep";
  for (const std::string& notice : plan.notices) {
    // What comes of --cluster here has to be said; too many threads are the user's choice.
    if (threading.cluster != ClusterChoice::kDefault) LOG(WARNING) << notice;
  }
  options.threads = start_threads(plan);
  options.plan_memory = load.plan_memory;
  options.function = load.function;
  options.given_inputs = load.given_inputs;
  options.devices = load.devices;
  if (load.watch_memory) options.on_loaded = [&] { memory.mark(kStageLoaded); };
  DebugExecutor executor(package.files, options);
  memory.mark(kStageParametersBound);
  check_metadata(package, executor);
  const double milliseconds = stopwatch.lap();

  const MemoryAccount account = executor.memory();
  VLOG(1) << executor.nodes().size() << " nodes, " << plan.threads << " threads, "
          << account.params_mapped << " bytes of parameters in place and " << account.params_copied
          << " copied, " << account.activations << " bytes of activations";
  return {std::move(package), std::move(plan),     std::move(memory),
          milliseconds,       std::move(executor), std::move(options.threads)};
}

std::vector<Tensor> copies_of_outputs(const GraphExecutor& executor) {
  std::vector<Tensor> copies;
  for (std::size_t i = 0; i < executor.outputs().size(); ++i) {
    copies.push_back(executor.output(i).clone());
  }
  return copies;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.nbytes() == b.nbytes() &&
         (a.nbytes() == 0 || std::memcmp(a.data(), b.data(), a.nbytes()) == 0);
}

void save_outputs(const GraphExecutor& executor, const std::filesystem::path& path) {
  std::vector<NamedTensor> tensors;
  for (std::size_t i = 0; i < executor.outputs().size(); ++i) {
    tensors.push_back({"output_" + std::to_string(i), executor.output(i)});
  }
  write_npz(path, tensors);
}

}  // namespace run_model
