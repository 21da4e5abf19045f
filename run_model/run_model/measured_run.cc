#include "run_model/run_model/measured_run.h"

#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <run_model/error.h>
#include <run_model/npz.h>
#include "artifacts/checksum.h"
#include "base/text.h"
#include "base/write_file.h"
#include "run_model/run_model/machine/watch.h"
#include "run_model/run_model/measure/instances.h"
#include "run_model/run_model/profile/formats.h"
#include "run_model/run_model/tensor_values.h"
#include "run_model/shared/formatted.h"
#include "run_model/shared/stopwatch.h"

namespace run_model {
namespace {

std::vector<NamedTensor> copies_of_inputs(GraphExecutor& executor) {
  std::vector<NamedTensor> copies;
  for (std::size_t i = 0; i < executor.inputs().size(); ++i) {
    copies.push_back({executor.inputs()[i].name, executor.input(i).clone()});
  }
  return copies;
}

std::string fingerprint_of(const std::vector<NamedTensor>& tensors) {
  std::uint64_t hash = kFnvStart;
  for (const NamedTensor& named : tensors) {
    hash = fnv_1a(named.name, hash);
    hash = fnv_1a({static_cast<const char*>(named.tensor.data()), named.tensor.nbytes()}, hash);
  }
  return hex(hash);
}

// Bit by bit: the same code on the same numbers has no reason to give others.
void check_repeated(GraphExecutor& executor, const std::vector<NamedTensor>& inputs,
                    const std::vector<Tensor>& outputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (same_bytes(inputs[i].tensor, executor.input(i))) continue;
    throw Error(ErrorKind::kModel, "the model has changed its own input " +
                                       in_quotes(inputs[i].name) +
                                       " while it was running: repeated runs were on other values");
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor last = executor.output(i);
    if (same_bytes(outputs[i], last)) continue;
    const std::string name = executor.outputs()[i].name;
    finite_range(last, "after repeated runs, the model's " + name);
    throw Error(ErrorKind::kModel,
                "the model's " + name +
                    " after repeated runs is not what the first run on the same "
                    "input gave",
                "the model is not deterministic, or one of its functions reads memory that it has "
                "not written");
  }
}

// One sample a line, so that plotting programs read it as it is.
void write_times(const std::filesystem::path& path, const std::vector<double>& samples) {
  std::string text;
  for (const double sample : samples) text += formatted("%.6f\n", sample);
  write_text_file(path, text);
}

// Further executors on the same inputs, each with its own threads.
std::vector<GraphExecutor> further_instances(const LoadedPackage& loaded, const Settings& settings,
                                             const std::vector<NamedTensor>& inputs) {
  std::vector<GraphExecutor> executors;
  for (int i = 1; i < settings.measure.instances; ++i) {
    ExecutorOptions options;
    options.threads = start_threads(loaded.thread_plan);
    options.plan_memory = settings.plan_memory;
    options.function = settings.function;
    options.devices = settings.devices;
    executors.emplace_back(loaded.package.files, options);
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      executors.back().set_input(k, inputs[k].tensor);
    }
  }
  return executors;
}

TimingMeasurement measure_at_once(GraphExecutor& first, std::vector<GraphExecutor>& others,
                                  const MeasureSettings& settings) {
  std::vector<std::function<void()>> runs{[&first] { first.run(); }};
  for (GraphExecutor& other : others) runs.push_back([&other] { other.run(); });
  return measure_instances(runs, settings);
}

void measure_timing(LoadedPackage& loaded, const Settings& settings,
                    const std::vector<NamedTensor>& inputs, RunReport& report) {
  GraphExecutor& executor = loaded.executor;
  for (std::size_t i = 0; i < executor.outputs().size(); ++i) {
    finite_range(executor.output(i), "the model's " + executor.outputs()[i].name);
  }
  const std::vector<Tensor> outputs = copies_of_outputs(executor);
  std::vector<GraphExecutor> others = further_instances(loaded, settings, inputs);
  const TimingMeasurement measurement =
      others.empty() ? measure_runs([&] { executor.run(); }, settings.measure, loaded.threads.get())
                     : measure_at_once(executor, others, settings.measure);
  check_repeated(executor, inputs, outputs);
  for (GraphExecutor& other : others) check_repeated(other, inputs, outputs);
  if (!settings.measure.times.empty()) write_times(settings.measure.times, measurement.samples);
  report.measurement = measurement;
  report.library_fingerprint = hex(file_xxh3_64(report.package.files.library));
  report.inputs_fingerprint = fingerprint_of(inputs);
}

void measure_profile(LoadedPackage& loaded, const Settings& settings, RunReport& report) {
  Profile profile = profile_model(loaded.executor, profile_runs(settings.measure));
  profile.model = report.package.model;
  profile.target = report.package.target;
  if (report.package.metadata) profile.tvm_version = report.package.metadata->tvm_version;
  profile.threads = report.threads;
  write_profile_files(profile, settings.profile);
  report.profile = std::move(profile);
  report.profile_settings = settings.profile;
}

}  // namespace

RunReport begin_report(const LoadedPackage& loaded) {
  RunReport report;
  report.package = loaded.package;
  report.threads = loaded.threads->threads();
  report.thread_plan = loaded.thread_plan;
  report.memory = loaded.memory;
  report.timing.load = loaded.load_milliseconds;
  report.devices = loaded.executor.devices();
  return report;
}

void run_and_measure(LoadedPackage& loaded, const Settings& settings, RunReport& report) {
  GraphExecutor& executor = loaded.executor;
  if (settings.threading.sweep && !report.devices.empty()) {
    throw Error(ErrorKind::kUsage,
                "--sweep threads tries threads of the CPU, but the model computes on " +
                    comma_list(report.devices),
                "measure it with --print-time");
  }
  const bool measured =
      settings.measure.wanted || settings.profile.wanted || settings.threading.sweep;
  // Before anything of ours adds to the load average.
  if (measured) report.machine = describe_machine(MachineDetail::kFull);
  std::vector<NamedTensor> inputs;
  if (settings.measure.wanted || !settings.save_inputs.empty()) inputs = copies_of_inputs(executor);
  if (!settings.save_inputs.empty()) write_npz(settings.save_inputs, inputs);
  Stopwatch stopwatch;
  executor.run();
  report.timing.run = stopwatch.lap();
  report.memory.mark(kStageFirstRun);
  if (!settings.outputs.empty()) save_outputs(executor, settings.outputs);

  std::optional<MachineWatch> watch;
  if (measured) watch.emplace();
  if (settings.threading.sweep) {
    report.sweep = run_thread_sweep(loaded, settings.threading, settings.measure);
  } else if (settings.measure.wanted) {
    measure_timing(loaded, settings, inputs, report);
  } else if (report.memory.enabled()) {
    for (int i = 0; i < 2; ++i) executor.run();
  }
  report.memory.mark(kStageSteady);
  if (settings.profile.wanted) measure_profile(loaded, settings, report);
  report.memory.finish(executor);
  if (watch) watch->finish(*report.machine);
  if (settings.json && !report.machine) report.machine = describe_machine(MachineDetail::kBrief);
}

}  // namespace run_model
