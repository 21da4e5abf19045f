#include "run_model/shared/thread_plan.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <run_model/error.h>
#include "run_model/shared/formatted.h"
#include "runtime/cpu/clusters.h"
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

using Clusters = std::vector<CpuCluster>;

// The CPUs of clusters first to last - 1.
std::vector<int> cpus_of(const Clusters& clusters, std::size_t first, std::size_t last) {
  std::vector<int> cpus;
  for (std::size_t i = first; i < last; ++i) {
    cpus.insert(cpus.end(), clusters[i].cpus.begin(), clusters[i].cpus.end());
  }
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

void check_allowed(const std::vector<int>& cpus, const std::vector<int>& allowed) {
  std::vector<int> refused;
  std::set_difference(cpus.begin(), cpus.end(), allowed.begin(), allowed.end(),
                      std::back_inserter(refused));
  if (refused.empty()) return;
  throw Error(ErrorKind::kUsage, "--cpus asks for CPU " + cpu_list_text(refused) +
                                     ", but this process may use only " + cpu_list_text(allowed));
}

const char* choice_name(ClusterChoice choice) {
  switch (choice) {
    case ClusterChoice::kBig:
      return "big";
    case ClusterChoice::kLittle:
      return "little";
    case ClusterChoice::kMiddle:
      return "middle";
    case ClusterChoice::kPrime:
      return "prime";
    case ClusterChoice::kDefault:
    case ClusterChoice::kAll:
      break;
  }
  return "all";
}

class Planner {
 public:
  Planner(const ThreadSettings& settings, const std::vector<int>& allowed,
          const std::filesystem::path& root)
      : settings_(settings),
        allowed_(allowed),
        root_(root),
        clusters_(cpu_clusters(allowed, root)) {}

  ThreadPlan run() {
    plan_.spin_microseconds =
        settings_.spin_microseconds.value_or(ThreadPoolOptions{}.spin_microseconds);
    const auto [given, by] = given_threads();
    choose_cpus(given);
    choose_threads(given, by);
    return std::move(plan_);
  }

 private:
  // 0 where nothing says how many; and what says it.
  std::pair<int, std::string> given_threads() const {
    if (settings_.threads > 0) return {settings_.threads, "--threads"};
    for (const char* variable : {"TVM_NUM_THREADS", "OMP_NUM_THREADS"}) {
      if (const int threads = ThreadPool::threads_from_environment(variable)) {
        return {threads, variable};
      }
    }
    return {0, ""};
  }

  void choose_cpus(int given_threads) {
    if (!settings_.cpus.empty()) {
      check_allowed(settings_.cpus, allowed_);
      take(settings_.cpus, "", "--cpus");
      return;
    }
    if (settings_.cluster == ClusterChoice::kDefault) {
      choose_default_cpus(given_threads);
    } else if (clusters_.size() < 2) {
      take(allowed_, "", "every CPU");
      if (settings_.cluster != ClusterChoice::kAll) {
        plan_.notices.push_back("--cluster " + std::string(choice_name(settings_.cluster)) +
                                " is every CPU here: the cores are all of one kind, as far as the "
                                "kernel tells");
      }
    } else {
      choose_cluster();
    }
  }

  void choose_default_cpus(int given_threads) {
    if (clusters_.size() < 2) return take(allowed_, "", "every CPU");
    const std::vector<int> big = cpus_of(clusters_, 1, clusters_.size());
    if (clusters_.front().strength >= kMuchWeaker) {
      return take(allowed_, "all", "every CPU: the cores differ little in strength");
    }
    if (given_threads > static_cast<int>(big.size())) {
      return take(allowed_, "all", "every CPU: more threads than big cores");
    }
    take(big, "big", "the big cores: little ones would hold them up");
  }

  void choose_cluster() {
    const std::size_t count = clusters_.size();
    const std::string name = choice_name(settings_.cluster);
    const std::string why = "--cluster " + name;
    switch (settings_.cluster) {
      case ClusterChoice::kLittle:
        return take(clusters_.front().cpus, name, why);
      case ClusterChoice::kPrime:
        return take(clusters_.back().cpus, name, why);
      case ClusterChoice::kMiddle:
        if (count > 2) return take(cpus_of(clusters_, 1, count - 1), name, why);
        plan_.notices.push_back("there are just two kinds of cores and no middle one: the big ones "
                                "are taken");
        [[fallthrough]];
      case ClusterChoice::kBig:
        return take(cpus_of(clusters_, 1, count), "big", why);
      case ClusterChoice::kDefault:
      case ClusterChoice::kAll:
        return take(allowed_, name, why);
    }
  }

  void take(const std::vector<int>& cpus, const std::string& cluster, const std::string& reason) {
    plan_.cpus = cpus;
    plan_.restricted = cpus != allowed_;
    plan_.cluster = cluster;
    plan_.reason = reason;
  }

  void choose_threads(int given, const std::string& by) {
    const std::optional<int> quota = cgroup_cpu_limit(root_);
    const int cpus = static_cast<int>(plan_.cpus.size());
    if (given > 0) {
      plan_.threads = given;
      plan_.reason = by + "; " + plan_.reason;
      if (given > cpus) {
        plan_.notices.push_back(counted(given, "thread") + " share " + counted(cpus, "CPU") +
                                ": they will wait for each other");
      } else if (quota && given > *quota) {
        plan_.notices.push_back(counted(given, "thread") + " under a quota of " +
                                counted(*quota, "CPU") + ": the system will halt them in between");
      }
      return;
    }
    const int cores = std::max(1, physical_cores(plan_.cpus, root_));
    plan_.threads = std::min(quota ? std::min(cores, *quota) : cores, ThreadPool::kMaxThreads);
    std::string why = "one for each physical core";
    if (plan_.threads < cores) why = "as many as the cgroup's quota of CPU time allows";
    if (settings_.instances > 1) {
      plan_.threads = std::max(1, plan_.threads / settings_.instances);
      why += ", shared by " + std::to_string(settings_.instances) + " instances";
    }
    plan_.reason = why + "; " + plan_.reason;
  }

  const ThreadSettings& settings_;
  const std::vector<int>& allowed_;
  const std::filesystem::path& root_;
  Clusters clusters_;
  ThreadPlan plan_;
};

}  // namespace

ThreadPlan make_thread_plan(const ThreadSettings& settings) {
  return make_thread_plan(settings, allowed_cpus(), "/");
}

ThreadPlan make_thread_plan(const ThreadSettings& settings, const std::vector<int>& allowed,
                            const std::filesystem::path& root) {
  return Planner(settings, allowed, root).run();
}

std::shared_ptr<ThreadPool> start_threads(const ThreadPlan& plan) {
  if (plan.restricted) restrict_to_cpus(plan.cpus);
  return std::make_shared<ThreadPool>(
      ThreadPoolOptions{.threads = plan.threads, .spin_microseconds = plan.spin_microseconds});
}

}  // namespace run_model
