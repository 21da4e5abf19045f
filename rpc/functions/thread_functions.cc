#include <algorithm>
#include <cstdint>
#include <vector>

#include <run_model/thread_pool.h>
#include "rpc/functions/builtin.h"
#include "runtime/cpu/clusters.h"
#include "runtime/cpu/topology.h"

namespace run_model::rpc {
namespace {

// TVM's ThreadGroup::AffinityMode (threading_backend.h, v0.18.0). Others mean no preference.
enum AffinityMode : std::int64_t {
  kBig = 1,
  kLittle = -1,
  kOneCorePerThread = -2,
  kThreadsShareCores = -3,
};

// The strongest or weakest CPUs: one kind of core, or as many kinds as it takes for `threads`.
std::vector<int> preferred_cpus(const std::vector<int>& allowed, bool strongest,
                                std::size_t threads) {
  std::vector<CpuCluster> clusters = cpu_clusters(allowed);
  if (strongest) std::reverse(clusters.begin(), clusters.end());
  std::vector<int> cpus;
  for (const CpuCluster& cluster : clusters) {
    if (!cpus.empty() && cpus.size() >= threads) break;
    cpus.insert(cpus.end(), cluster.cpus.begin(), cluster.cpus.end());
  }
  return cpus;
}

// The CPU numbers behind the first two arguments.
std::vector<int> listed_cpus(const Arguments& arguments) {
  std::vector<int> cpus;
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    constexpr std::int64_t kMaxCpu = 1 << 16;
    cpus.push_back(static_cast<int>(arguments.integer_within(i, 0, kMaxCpu)));
  }
  return cpus;
}

// Mode, number of threads (0: as many as there are cores) and, for modes with a choice, CPU
// numbers. TVM passes these as an array, which cannot travel over RPC; here they follow one by one.
Value configure(const Arguments& arguments, const std::vector<int>& allowed) {
  arguments.check_count(2, 2 + allowed.size());
  const std::int64_t mode = arguments.integer(0);
  const auto asked =
      static_cast<std::size_t>(arguments.integer_within(1, 0, ThreadPool::kMaxThreads));
  const std::size_t threads = std::min(asked, allowed.size());
  std::vector<int> cpus = listed_cpus(arguments);
  ThreadPoolOptions options;
  if (mode == kBig || mode == kLittle) {
    cpus = preferred_cpus(allowed, mode == kBig, threads);
  } else if (cpus.empty()) {
    cpus = allowed;
  }
  const std::vector<int> in_order = cpus;
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  restrict_to_cpus(cpus);  // of this thread, and by it of the pool's
  options.threads = threads != 0 ? static_cast<int>(threads) : ThreadPool::default_threads();
  if (mode == kOneCorePerThread && in_order.size() >= static_cast<std::size_t>(options.threads)) {
    options.worker_cpus.assign(in_order.begin() + 1, in_order.begin() + options.threads);
  }
  ThreadPool::set_shared(std::make_shared<ThreadPool>(options));
  return {};
}

}  // namespace

void add_thread_functions(Registry& registry) {
  // Asked before anything narrows them.
  registry.add("runtime.config_threadpool", [allowed = allowed_cpus()](const Arguments& arguments) {
    return configure(arguments, allowed);
  });
  registry.add("runtime.NumThreads", [](const Arguments& arguments) -> Value {
    arguments.check_count(0, 0);
    return static_cast<std::int64_t>(ThreadPool::shared()->threads());
  });
}

}  // namespace run_model::rpc
