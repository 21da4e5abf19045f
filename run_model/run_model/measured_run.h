// Running a model whose inputs are set: the first run, and what is measured after it.
#pragma once

#include "run_model/run_model/settings.h"
#include "run_model/shared/loaded_package.h"

namespace run_model {

// Runs the model once, which fills loaded.report.timing.run, and writes its outputs where --outputs
// asks for them. Then measures what the settings ask for into loaded.report, and leaves the outputs
// of the first run in the executor. Throws as GraphExecutor::run does, and Error(kModel) when a
// repeated run gives other outputs than the first one or has changed the inputs: times of such runs
// would be times of something else.
void run_and_measure(LoadedPackage& loaded, const Settings& settings);

}  // namespace run_model
