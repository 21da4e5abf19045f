#include "run_model/run_model/measure/instances.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <latch>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "run_model/shared/stopwatch.h"

namespace run_model {
namespace {

using Clock = std::chrono::steady_clock;

// What one of them has measured.
struct InstanceSamples {
  std::vector<double> times;
  std::vector<Clock::time_point> ends;
  std::size_t warm_up_runs = 0;
};

class Instances {
 public:
  Instances(std::span<const std::function<void()>> runs, const MeasureSettings& settings)
      : runs_(runs), settings_(settings), samples_(runs.size()), start_(std::ssize(runs)) {}

  TimingMeasurement measure() {
    {
      std::vector<std::jthread> threads;
      for (std::size_t i = 1; i < runs_.size(); ++i) {
        if (!start_thread(threads, i)) break;
      }
      run_guarded(0);
    }
    if (failure_) std::rethrow_exception(failure_);
    return result();
  }

 private:
  // Whether there is one more; where the system refuses, no further ones are waited for.
  bool start_thread(std::vector<std::jthread>& threads, std::size_t index) {
    try {
      threads.emplace_back([this, index] { run_guarded(index); });
      return true;
    } catch (const std::system_error&) {
      fail();
      for (std::size_t missing = index; missing < runs_.size(); ++missing) {
        start_.count_down();
      }
      return false;
    }
  }

  // In a handler: remembers what was thrown first, and ends all.
  void fail() {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    stop_ = true;
  }

  void run_guarded(std::size_t index) {
    bool started = false;
    try {
      warm_up(index);
      started = true;
      start_.arrive_and_wait();
      take_samples(index);
    } catch (...) {
      fail();
    }
    // The others do not wait for one that has failed.
    if (!started) start_.count_down();
  }

  void warm_up(std::size_t index) {
    const Clock::time_point begin = Clock::now();
    const std::chrono::duration<double> least(settings_.warm_up_seconds);
    std::size_t& runs = samples_[index].warm_up_runs;
    while (!stop_ && (runs < settings_.warm_up_runs || Clock::now() - begin < least)) {
      runs_[index]();
      ++runs;
    }
    if (index == 0) warm_up_ = milliseconds(Clock::now() - begin);
  }

  // The first one decides for all when it is enough.
  void take_samples(std::size_t index) {
    InstanceSamples& samples = samples_[index];
    StopRule rule(settings_);
    const Clock::time_point first = Clock::now();
    if (index == 0) first_ = first;
    while (!stop_) {
      const Clock::time_point begin = Clock::now();
      for (int i = 0; i < settings_.number; ++i) runs_[index]();
      const Clock::time_point end = Clock::now();
      samples.times.push_back(milliseconds(end - begin) / settings_.number);
      samples.ends.push_back(end);
      if (index > 0) continue;
      last_ = end;
      const std::chrono::duration<double> elapsed = end - first;
      if (const auto stop = rule.after(samples.times, elapsed.count())) {
        stopped_by_ = *stop;
        stop_ = true;
      }
    }
  }

  TimingMeasurement result() const {
    TimingMeasurement result;
    result.instances = static_cast<int>(runs_.size());
    result.number = settings_.number;
    result.warm_up_runs = samples_[0].warm_up_runs;
    result.warm_up = warm_up_;
    result.stopped_by = stopped_by_;
    result.measured = milliseconds(last_ - first_);
    result.clock_overhead = clock_overhead();
    for (const InstanceSamples& samples : samples_) {
      for (std::size_t i = 0; i < samples.times.size(); ++i) {
        if (samples.ends[i] <= last_) result.samples.push_back(samples.times[i]);
      }
    }
    result.run = describe(result.samples);
    return result;
  }

  std::span<const std::function<void()>> runs_;
  const MeasureSettings& settings_;
  std::vector<InstanceSamples> samples_;
  // A std::barrier would need byte-wide atomics, which RISC-V has in libatomic only.
  std::latch start_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::exception_ptr failure_;
  // Written by the first one's thread, which is the calling one.
  Clock::time_point first_, last_;
  double warm_up_ = 0.0;
  StoppedBy stopped_by_ = StoppedBy::kCount;
};

}  // namespace

TimingMeasurement measure_instances(std::span<const std::function<void()>> runs,
                                    const MeasureSettings& settings) {
  return Instances(runs, settings).measure();
}

}  // namespace run_model
