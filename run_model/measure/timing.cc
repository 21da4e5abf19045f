#include "run_model/measure/timing.h"

#include "run_model/stopwatch.h"

namespace run_model {

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

TimingMeasurement measure_runs(const std::function<void()>& run, const MeasureSettings& settings,
                               ThreadPool* /*threads*/) {
  TimingMeasurement result;
  result.number = settings.number;
  for (; result.warm_up_runs < settings.warm_up_runs; ++result.warm_up_runs) run();
  while (result.samples.size() < settings.repeat) {
    Stopwatch stopwatch;
    for (int i = 0; i < settings.number; ++i) run();
    result.samples.push_back(stopwatch.lap() / settings.number);
  }
  result.run = describe(result.samples);
  return result;
}

}  // namespace run_model
