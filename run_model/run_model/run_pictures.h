// Running a model on one picture, or on one after the other.
#pragma once

#include <string>

#include "run_model/run_model/report.h"
#include "run_model/run_model/settings.h"

namespace run_model {

// Loads the artifact, runs it on the picture, and writes the files of --dump-input, --outputs,
// --draw, --save-mask and --coco. Throws Error of any code but kInternal.
PictureReport run_picture(const Settings& settings);

// The same for a folder, or paths from standard input. Says of each picture on standard output what
// was found, or why it could not be looked at, as soon as it is known; the others are done all the
// same. Returns the exit code: 0, or kExitSomeFailed. Throws as run_picture does where the artifact
// or what is written is the problem.
int run_pictures(const Settings& settings);

}  // namespace run_model
