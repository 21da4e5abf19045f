// run_model --compare: what differs between two results.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "run_model/run_model/compare/arrays.h"
#include "run_model/run_model/compare/times.h"
#include "run_model/run_model/measure/statistics.h"
#include "run_model/run_model/setting_groups.h"

namespace run_model {

struct TimesComparison {
  Statistics first;
  Statistics second;
  TimeRatio ratio;
  std::vector<std::string> differences;  // conditions that are not the same, one phrase each
  std::vector<std::string> warnings;     // of the reports themselves
};

// Either `times` is there, or `arrays` is meant.
struct Comparison {
  std::filesystem::path first;
  std::filesystem::path second;
  CompareSettings settings;
  std::optional<TimesComparison> times;
  std::vector<ArrayComparison> arrays;

  bool worse() const;  // slower, or beyond the tolerance
};

// Two reports of repeated runs, or two .npz or .npy files: told by their first bytes. Throws
// Error(kMismatch) for one of each, and as read_timed_report and compare_array_files do.
Comparison compare_files(const std::filesystem::path& first, const std::filesystem::path& second,
                         const CompareSettings& settings);

std::string comparison_text(const Comparison& comparison);
std::string comparison_json(const Comparison& comparison);

}  // namespace run_model
