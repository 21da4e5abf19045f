// Functions of a Relax executable called one after the other, as a file says: what a model keeps
// between its calls goes from one to the next.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <run_model/tensor.h>
#include "run_model/run_model/settings.h"

namespace run_model {

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
