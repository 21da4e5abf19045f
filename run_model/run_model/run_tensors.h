// Running a model on tensors from a file or filled ones.
#pragma once

#include "run_model/run_model/report.h"
#include "run_model/run_model/settings.h"

namespace run_model {

// Loads the artifact, sets every input from the file of --inputs or as --fill-mode says, runs and
// measures the model, and writes the outputs to the file of --outputs, if one is given. Throws
// Error of any code but kInternal and kImage; outputs that hold NaN or infinity are written before
// the error is thrown.
TensorsReport run_tensors(const Settings& settings);

}  // namespace run_model
