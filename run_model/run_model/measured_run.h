// Running a model whose inputs are set: the first run, and what is measured after it.
#pragma once

#include "run_model/run_model/report/report.h"
#include "run_model/run_model/settings.h"
#include "run_model/shared/loaded_package.h"

namespace run_model {

// What loading has to tell; the stages of memory go on in the report.
RunReport begin_report(const LoadedPackage& loaded);

// Runs the model once, which fills report.timing.run, and writes its outputs where --outputs asks
// for them. Then measures what the settings ask for into the report, and leaves the outputs of the
// first run in the executor. Throws as GraphExecutor::run does, and Error(kModel) when a repeated
// run gives other outputs than the first one or has changed the inputs: times of such runs would be
// times of something else.
void run_and_measure(LoadedPackage& loaded, const Settings& settings, RunReport& report);

}  // namespace run_model
