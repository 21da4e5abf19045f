#include "run_model/run_model/measure/timing.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "run_model/run_model/measure/cold_cache.h"
#include "run_model/run_model/measure/statistics.h"
#include "run_model/shared/formatted.h"
#include "run_model/shared/progress_line.h"
#include "run_model/shared/stopwatch.h"

namespace run_model {
namespace {

using Clock = std::chrono::steady_clock;

// Fewer samples can agree by chance.
constexpr std::size_t kFirstLook = 20;

}  // namespace

double clock_overhead() {
  std::array<Clock::duration, 1001> gaps{};
  for (Clock::duration& gap : gaps) {
    const Clock::time_point start = Clock::now();
    gap = Clock::now() - start;
  }
  const auto middle = gaps.begin() + gaps.size() / 2;
  std::nth_element(gaps.begin(), middle, gaps.end());
  return std::chrono::duration<double, std::milli>(*middle).count();
}

double TimingMeasurement::runs_per_second() const {
  const double runs = static_cast<double>(samples.size()) * number;
  return measured > 0 ? 1000 * runs / measured : 0.0;
}

std::string_view stopped_by_name(StoppedBy stopped_by) {
  switch (stopped_by) {
    case StoppedBy::kCount:
      return "count";
    case StoppedBy::kSeconds:
      return "seconds";
    case StoppedBy::kInterval:
      break;
  }
  return "interval";
}

std::optional<StoppedBy> StopRule::after(std::span<const double> samples, double seconds) {
  if (settings_.max_seconds > 0 && seconds >= settings_.max_seconds) return StoppedBy::kSeconds;
  if (seconds < settings_.min_seconds) return std::nullopt;
  if (settings_.until_interval && interval_reached(samples)) return StoppedBy::kInterval;
  if (samples.size() < settings_.repeat) return std::nullopt;
  return samples.size() == settings_.repeat ? StoppedBy::kCount : StoppedBy::kSeconds;
}

// Every look is another chance to stop on a lucky streak, and costs a sort: so they get rarer.
bool StopRule::interval_reached(std::span<const double> samples) {
  if (samples.size() < std::max(kFirstLook, next_look_)) return false;
  next_look_ = samples.size() + samples.size() / 8;
  const std::optional<double> width = describe(samples).relative_interval();
  return width && *width <= *settings_.until_interval;
}

// From the first start instead of the previous one: rounding does not add up.
Clock::time_point PlannedStarts::planned(std::size_t index) const {
  const std::chrono::duration<double> offset(static_cast<double>(index) / fps_);
  return *first_ + std::chrono::duration_cast<Clock::duration>(offset);
}

Clock::time_point PlannedStarts::wait(Clock::time_point ready) {
  if (!first_) return first_.emplace(Clock::now());
  ++last_;
  for (; planned(last_) < ready; ++last_) ++missed_;
  std::this_thread::sleep_until(planned(last_));
  return planned(last_);
}

void Pacer::ran(Clock::time_point start, Clock::time_point end) {
  lateness_.push_back(milliseconds(start - planned_));
  latency_.push_back(milliseconds(end - planned_));
  busy_ += milliseconds(end - start);
  last_end_ = end;
}

PacingResult Pacer::result() const {
  PacingResult result;
  result.fps = starts_.fps();
  result.missed = starts_.missed();
  const double total = milliseconds(last_end_ - starts_.first());
  if (total > 0) result.idle_share = 1 - busy_ / total;
  result.lateness = describe(lateness_);
  result.latency = describe(latency_);
  return result;
}

namespace {

// Room for samples is made beforehand, but not for a count that is hardly ever reached.
constexpr std::size_t kMaxReserve = 100'000;

constexpr std::chrono::milliseconds kProgressPause(250);

class Measurement {
 public:
  Measurement(const std::function<void()>& run, const MeasureSettings& settings,
              ThreadPool* threads)
      : run_(run), settings_(settings), progress_(settings.show_progress, kProgressPause) {
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
      show_progress("sample", result_.samples.size(), settings_.repeat, result_.samples.back());
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
      show_progress("warm-up run", result_.warm_up_runs, 0, milliseconds(now - before));
      before = now;
    }
    result_.warm_up = milliseconds(before - start);
  }

  // "sample 12 of 100", where `all` is not 0; with the last time taken.
  void show_progress(const char* what, std::size_t done, std::size_t all, double last) {
    if (!progress_.is_due()) return;
    std::string line = std::string(what) + " " + std::to_string(done);
    if (all != 0) line += " of " + std::to_string(all);
    progress_.show(line + formatted(", last %.3f ms", last));
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
  ProgressLine progress_;
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
