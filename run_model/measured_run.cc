#include "run_model/measured_run.h"

#include "run_model/stopwatch.h"

namespace run_model {

void run_and_measure(LoadedPackage& loaded, const Settings& settings) {
  GraphExecutor& executor = loaded.executor;
  Stopwatch stopwatch;
  executor.run();
  loaded.report.timing.run = stopwatch.lap();
  if (!settings.outputs.empty()) save_outputs(executor, settings.outputs);
  if (settings.measure.wanted) {
    loaded.report.measurement = measure_runs([&] { executor.run(); }, settings.measure);
  }
}

}  // namespace run_model
