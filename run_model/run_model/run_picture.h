// Classifies one picture.
#pragma once

#include "run_model/run_model/report.h"
#include "run_model/run_model/settings.h"

namespace run_model {

// Loads the artifact and the labels, preprocesses the picture, runs the model once and ranks the
// classes; writes the files of --dump-input and --outputs. Throws Error of any code but kInternal.
PictureReport run_picture(const Settings& settings);

}  // namespace run_model
