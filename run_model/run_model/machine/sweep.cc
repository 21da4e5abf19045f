#include "run_model/run_model/machine/sweep.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include <run_model/error.h>
#include "run_model/shared/loaded_package.h"
#include "run_model/shared/progress_line.h"
#include "runtime/cpu/clusters.h"
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

constexpr std::size_t kRounds = 5;
constexpr std::chrono::milliseconds kSweepProgressPause(250);

constexpr double kAsFast = 1.02;
constexpr double kAsFastWithinNoise = 1.10;

// CPU time of this process so far, all threads, in milliseconds.
double cpu_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto milliseconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime);
}

// Of one round.
MeasureSettings share_of(const MeasureSettings& measure) {
  MeasureSettings share = measure;
  share.repeat = (measure.repeat + kRounds - 1) / kRounds;
  share.min_seconds = measure.min_seconds / kRounds;
  share.max_seconds = measure.max_seconds / kRounds;
  share.show_progress = false;
  return share;
}

// Puts the mask and the threads back, also when a run fails.
class Restore {
 public:
  explicit Restore(LoadedPackage& loaded) : loaded_(loaded), cpus_(allowed_cpus()) {}
  ~Restore() {
    loaded_.executor.set_threads(loaded_.threads);
    widen();
  }
  Restore(const Restore&) = delete;
  Restore& operator=(const Restore&) = delete;

  const std::vector<int>& cpus() const { return cpus_; }
  void widen() const noexcept {
    try {
      restrict_to_cpus(cpus_);
    } catch (const Error&) {
      // The CPUs were allowed before; should one be gone, the narrower mask has to do.
    }
  }

 private:
  LoadedPackage& loaded_;
  std::vector<int> cpus_;
};

struct Collected {
  std::vector<double> samples;
  double cpu_milliseconds = 0.0;
  std::size_t runs = 0;
};

void measure_once(LoadedPackage& loaded, const ThreadPlan& plan, const MeasureSettings& measure,
                  Collected& collected) {
  const std::shared_ptr<ThreadPool> pool = start_threads(plan);
  loaded.executor.set_threads(pool);
  const double before = cpu_time();
  const TimingMeasurement measured =
      measure_runs([&] { loaded.executor.run(); }, measure, pool.get());
  collected.cpu_milliseconds += cpu_time() - before;
  collected.runs +=
      measured.warm_up_runs + measured.samples.size() * static_cast<std::size_t>(measured.number);
  collected.samples.insert(collected.samples.end(), measured.samples.begin(),
                           measured.samples.end());
}

void check_outputs(const GraphExecutor& executor, const std::vector<Tensor>& expected,
                   const SweepRow& row, const SweepRow& first) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (same_bytes(expected[i], executor.output(i))) continue;
    throw Error(ErrorKind::kModel,
                "the model's " + executor.outputs()[i].name + " with " + row.flags +
                    " is not what " + first.flags + " gave",
                "the model is not deterministic, or wrong when it runs on several threads");
  }
}

std::string threads_text(const SweepRow& row) {
  return std::to_string(row.plan.threads) + (row.plan.threads == 1 ? " thread" : " threads") +
         (row.plan.cluster.empty() ? "" : " on " + row.plan.cluster);
}

bool as_fast(const Statistics& run, const Statistics& best) {
  if (run.median <= best.median * kAsFast) return true;
  return run.median <= best.median * kAsFastWithinNoise && run.interval && best.interval &&
         run.interval->low <= best.interval->high;
}

}  // namespace

void recommend(ThreadSweep& sweep) {
  const std::vector<SweepRow>& rows = sweep.rows;
  std::size_t best = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].run.median < rows[best].run.median) best = i;
  }
  std::size_t chosen = best;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!as_fast(rows[i].run, rows[best].run)) continue;
    const int fewer = rows[chosen].plan.threads - rows[i].plan.threads;
    if (fewer > 0 || (fewer == 0 && rows[i].cpu_per_run < rows[chosen].cpu_per_run)) chosen = i;
  }
  sweep.recommended = chosen;
  if (chosen == best) {
    sweep.why = threads_text(rows[best]) + (rows[best].plan.threads == 1 ? " is" : " are") +
                " the fastest, and fewer are slower beyond noise";
    if (rows[best].plan.threads == 1) sweep.why = "one thread is the fastest";
  } else {
    sweep.why =
        "as fast as the fastest (" + rows[best].flags + ") within noise, with " +
        (rows[chosen].plan.threads < rows[best].plan.threads ? "fewer threads" : "less CPU time");
  }
}

ThreadSweep run_thread_sweep(LoadedPackage& loaded, const ThreadSettings& threading,
                             const MeasureSettings& measure) {
  const Restore restore(loaded);
  ThreadSweep sweep;
  sweep.rows = sweep_settings(threading, restore.cpus(), "/");
  sweep.rounds = kRounds;
  const MeasureSettings share = share_of(measure);
  std::vector<Collected> collected(sweep.rows.size());
  std::vector<Tensor> outputs;
  ProgressLine progress(measure.show_progress, kSweepProgressPause);
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
      restore.widen();
      measure_once(loaded, sweep.rows[i].plan, share, collected[i]);
      if (outputs.empty()) outputs = copies_of_outputs(loaded.executor);
      check_outputs(loaded.executor, outputs, sweep.rows[i], sweep.rows.front());
      progress.show("sweep, measurement " + std::to_string(round * sweep.rows.size() + i + 1) +
                    " of " + std::to_string(kRounds * sweep.rows.size()));
    }
  }
  for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
    SweepRow& row = sweep.rows[i];
    row.run = describe(collected[i].samples);
    row.cpu_per_run = collected[i].cpu_milliseconds / static_cast<double>(collected[i].runs);
    row.speed_up = sweep.rows.front().run.median / row.run.median;
    row.efficiency = row.speed_up / row.plan.threads;
  }
  recommend(sweep);
  return sweep;
}

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

class RowMaker {
 public:
  RowMaker(const ThreadSettings& threading, const std::vector<int>& allowed, const fs::path& root)
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
  return RowMaker(threading, allowed, root).run();
}

}  // namespace run_model
