#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "run_model/run_model/machine/thread_sweep.h"
#include "runtime/cpu/clusters.h"
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

constexpr int kEachUpTo = 8;

// A set of CPUs to try, and the smallest number of threads that makes sense on it: fewer fit on a
// part of it that is tried as well.
struct Place {
  ThreadSettings settings;
  std::string flag;  // " --cluster big"
  int fewest = 1;
};

class Settings {
 public:
  Settings(const ThreadSettings& threading, const std::vector<int>& allowed, const fs::path& root)
      : threading_(threading), allowed_(allowed), root_(root) {}

  std::vector<SweepRow> run() {
    for (const Place& place : places()) try_place(place);
    return std::move(rows_);
  }

 private:
  std::vector<Place> places() const {
    ThreadSettings base = threading_;
    base.threads = 0;
    if (!base.cpus.empty()) return {{base, " --cpus " + cpu_list_text(base.cpus), 1}};
    const std::vector<CpuCluster> clusters = cpu_clusters(allowed_, root_);
    if (clusters.size() < 2) {
      base.cluster = ClusterChoice::kAll;
      return {{base, "", 1}};
    }
    const auto place = [&](ClusterChoice choice, const char* name, std::size_t fewest) {
      Place made{base, std::string(" --cluster ") + name, static_cast<int>(fewest)};
      made.settings.cluster = choice;
      return made;
    };
    const std::size_t prime = clusters.back().cpus.size();
    const std::size_t big = allowed_.size() - clusters.front().cpus.size();
    std::vector<Place> all;
    if (clusters.size() > 2) {
      all = {place(ClusterChoice::kPrime, "prime", 1), place(ClusterChoice::kMiddle, "middle", 1),
             place(ClusterChoice::kBig, "big", prime + 1)};
    } else {
      all = {place(ClusterChoice::kBig, "big", 1)};
    }
    all.push_back(place(ClusterChoice::kLittle, "little", 1));
    all.push_back(place(ClusterChoice::kAll, "all", big + 1));
    if (threading_.cluster != ClusterChoice::kDefault) {
      std::erase_if(
          all, [&](const Place& tried) { return tried.settings.cluster != threading_.cluster; });
      // Prime and middle are tried as big where there are just two clusters.
      if (all.empty()) all = {place(ClusterChoice::kBig, "big", 1)};
      all.front().fewest = 1;
    }
    return all;
  }

  void try_place(const Place& place) {
    const ThreadPlan whole = make_thread_plan(place.settings, allowed_, root_);
    const int cores = std::max(1, physical_cores(whole.cpus, root_));
    const int cpus = static_cast<int>(whole.cpus.size());
    int most = cgroup_cpu_limit(root_).value_or(cpus);
    if (threading_.threads > 0) most = std::min(most, threading_.threads);

    std::set<int> counts{cores, cpus};
    for (int count = place.fewest; count < cores; count += count < kEachUpTo ? 1 : count) {
      counts.insert(count);
    }
    std::erase_if(counts, [&](int count) { return count > most || count < place.fewest; });
    if (counts.empty() && rows_.empty()) counts.insert(std::max(1, most));
    for (int count : counts) add(place, count, threading_.spin_microseconds);
    const bool several = !counts.empty() && *counts.rbegin() > 1;
    if (several && !threading_.spin_microseconds) add(place, *counts.rbegin(), 0);
  }

  void add(const Place& place, int threads, std::optional<int> spin) {
    ThreadSettings settings = place.settings;
    settings.threads = threads;
    settings.spin_microseconds = spin;
    SweepRow row;
    row.plan = make_thread_plan(settings, allowed_, root_);
    row.flags = "--threads " + std::to_string(threads) + place.flag;
    if (spin) row.flags += " --spin " + std::to_string(*spin);
    rows_.push_back(std::move(row));
  }

  const ThreadSettings& threading_;
  const std::vector<int>& allowed_;
  const fs::path& root_;
  std::vector<SweepRow> rows_;
};

}  // namespace

std::vector<SweepRow> sweep_settings(const ThreadSettings& threading,
                                     const std::vector<int>& allowed, const fs::path& root) {
  return Settings(threading, allowed, root).run();
}

}  // namespace run_model
