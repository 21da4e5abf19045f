#include "run_model/run_model/measure/timing.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "run_model/run_model/measure/clock_overhead.h"
#include "run_model/run_model/measure/cold_cache.h"
#include "run_model/run_model/measure/measure_progress.h"

namespace run_model {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

// Room for samples is made beforehand, but not for a count that is hardly ever reached.
constexpr std::size_t kMaxReserve = 100'000;

class Measurement {
 public:
  Measurement(const std::function<void()>& run, const MeasureSettings& settings,
              ThreadPool* threads)
      : run_(run), settings_(settings), progress_(settings.show_progress) {
    if (settings.cold_cache) evictor_.emplace(threads);
    if (settings.fps > 0) pacer_.emplace(settings.fps);
    result_.number = settings.number;
    result_.clock_overhead = clock_overhead();
    if (evictor_) result_.cold_cache_bytes = evictor_->bytes();
    result_.samples.reserve(std::min(settings.repeat, kMaxReserve));
  }

  TimingMeasurement measure() {
    warm_up();
    StopRule rule(settings_);
    std::optional<StoppedBy> stop;
    const Clock::time_point first = Clock::now();
    while (!stop) {
      sample();
      const Clock::duration elapsed = Clock::now() - first;
      result_.measured = milliseconds(elapsed);
      progress_.show("sample", result_.samples.size(), settings_.repeat, result_.samples.back());
      stop = rule.after(result_.samples, std::chrono::duration<double>(elapsed).count());
    }
    result_.stopped_by = *stop;
    result_.run = describe(result_.samples);
    if (pacer_) result_.pacing = pacer_->result();
    return std::move(result_);
  }

 private:
  void warm_up() {
    const Clock::time_point start = Clock::now();
    const std::chrono::duration<double> least(settings_.warm_up_seconds);
    Clock::time_point before = start;
    while (result_.warm_up_runs < settings_.warm_up_runs || Clock::now() - start < least) {
      run_();
      ++result_.warm_up_runs;
      const Clock::time_point now = Clock::now();
      progress_.show("warm-up run", result_.warm_up_runs, 0, milliseconds(now - before));
      before = now;
    }
    result_.warm_up = milliseconds(before - start);
  }

  void sample() {
    if (evictor_) evictor_->evict();
    if (pacer_) pacer_->wait();
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < settings_.number; ++i) run_();
    const Clock::time_point end = Clock::now();
    result_.samples.push_back(milliseconds(end - start) / settings_.number);
    if (pacer_) pacer_->ran(start, end);
  }

  const std::function<void()>& run_;
  const MeasureSettings& settings_;
  MeasureProgress progress_;
  std::optional<CacheEvictor> evictor_;
  std::optional<Pacer> pacer_;
  TimingMeasurement result_;
};

}  // namespace

TimingMeasurement measure_runs(const std::function<void()>& run, const MeasureSettings& settings,
                               ThreadPool* threads) {
  return Measurement(run, settings, threads).measure();
}

}  // namespace run_model
