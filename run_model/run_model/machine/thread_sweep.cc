#include "run_model/run_model/machine/thread_sweep.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstring>

#include <run_model/error.h>
#include "run_model/run_model/measure/measure_progress.h"
#include "run_model/shared/loaded_package.h"
#include "runtime/cpu/topology.h"

namespace run_model {
namespace {

constexpr std::size_t kRounds = 5;

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

std::vector<Tensor> copies_of_outputs(const GraphExecutor& executor) {
  std::vector<Tensor> copies;
  for (std::size_t i = 0; i < executor.outputs().size(); ++i) {
    copies.push_back(executor.output(i).clone());
  }
  return copies;
}

void check_outputs(const GraphExecutor& executor, const std::vector<Tensor>& expected,
                   const SweepRow& row, const SweepRow& first) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const Tensor output = executor.output(i);
    if (output.nbytes() == 0 ||
        std::memcmp(output.data(), expected[i].data(), output.nbytes()) == 0) {
      continue;
    }
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
  MeasureProgress progress(measure.show_progress);
  for (std::size_t round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < sweep.rows.size(); ++i) {
      restore.widen();
      measure_once(loaded, sweep.rows[i].plan, share, collected[i]);
      if (outputs.empty()) outputs = copies_of_outputs(loaded.executor);
      check_outputs(loaded.executor, outputs, sweep.rows[i], sweep.rows.front());
      progress.show("sweep, measurement", round * sweep.rows.size() + i + 1,
                    kRounds * sweep.rows.size(), collected[i].samples.back());
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

}  // namespace run_model
