// The three ways of running a model: on pictures, on tensors, and call by call.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "run_model/run_model/report/report.h"
#include "run_model/run_model/settings.h"

namespace run_model {

// Loads the artifact, runs it on the picture, and writes the files of --dump-input, --outputs,
// --draw, --save-mask and --coco. Throws Error of any code but kInternal.
PictureReport run_picture(const Settings& settings);

// The same for a folder, or paths from standard input. Says of each picture on standard output what
// was found, or why it could not be looked at, as soon as it is known; the others are done all the
// same. Returns the exit code: 0, or kExitSomeFailed. With --coco, a signal that asks for the end
// is followed after the picture at hand and the file. Throws as run_picture does where the artifact
// or what is written is the problem.
int run_pictures(const Settings& settings);

// Loads the artifact, sets every input from the file of --inputs or as --fill-mode says, runs and
// measures the model, and writes the outputs to the file of --outputs, if one is given. Throws
// Error of any code but kInternal and kImage; outputs that hold NaN or infinity are written before
// the error is thrown.
TensorsReport run_tensors(const Settings& settings);

// Functions of a Relax executable called one after the other, as a file says: what a model keeps
// between its calls goes from one to the next.
struct CallReport {
  std::string function;
  std::string result;  // its name in the file; empty where it has none
  std::string value;   // "(float32 [1, 3, 32], (nothing, a state))"
  double milliseconds = 0;
};

struct CallsReport {
  std::filesystem::path library;
  std::filesystem::path outputs_file;  // empty: nothing was written
  std::vector<std::string> outputs;    // the names in it
  double load_milliseconds = 0;
  std::vector<CallReport> calls;
};

// Does what the file of --calls says with the arrays of --inputs, and writes what it saves to
// --outputs. Throws Error of any code but kInternal and kImage.
CallsReport run_calls(const Settings& settings);

std::string calls_report_text(const CallsReport& report);
std::string calls_report_json(const CallsReport& report);

}  // namespace run_model
