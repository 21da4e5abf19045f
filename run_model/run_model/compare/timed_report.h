// A report of repeated runs, read back.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace run_model {

// Something about a measurement that times depend on: "CPU", "AMD EPYC".
struct Condition {
  std::string name;
  std::string value;  // empty: the report does not tell
};

struct TimedReport {
  std::vector<Condition> conditions;  // the same ones in the same order in every report
  std::vector<std::string> warnings;  // the report's own, about the machine
  std::vector<double> samples;        // milliseconds, in the order in which they were taken
};

// Reads what `run_model --json` prints when runs are repeated. Throws Error(kFile) when the file
// cannot be read, Error(kFormat) when it is damaged, no such report, or has fewer than
// kMinComparedSamples samples, and Error(kIncompatible) for another schema version.
TimedReport read_timed_report(const std::filesystem::path& path);

}  // namespace run_model
