#include "run_model/run_model/compare/compare.h"

#include <algorithm>

#include <run_model/error.h>
#include "base/file.h"
#include "base/text.h"

namespace run_model {
namespace {

// A zip archive, also an empty one, or a .npy file (<run_model/npy.h>).
bool holds_arrays(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file_start(path, 6);
  const std::string_view start = as_text(bytes);
  return start.starts_with("PK\x03\x04") || start.starts_with("PK\x05\x06") || start == "\x93NUMPY";
}

// Names of the files are in the report besides; here they are the first and the second.
std::vector<std::string> differing_conditions(const TimedReport& first, const TimedReport& second) {
  const auto shown = [](const std::string& value) {
    return value.empty() ? "unknown" : in_quotes(value);
  };
  std::vector<std::string> differences;
  for (std::size_t i = 0; i < first.conditions.size(); ++i) {
    const Condition& a = first.conditions[i];
    const Condition& b = second.conditions[i];
    if (a.value == b.value) continue;
    differences.push_back(a.name + ": " + shown(a.value) + ", then " + shown(b.value));
  }
  return differences;
}

TimesComparison compare_reports(const std::filesystem::path& first_path,
                                const std::filesystem::path& second_path, double noise) {
  const TimedReport first = read_timed_report(first_path);
  const TimedReport second = read_timed_report(second_path);
  TimesComparison result;
  result.first = describe(first.samples);
  result.second = describe(second.samples);
  result.ratio = compare_times(first.samples, second.samples, noise);
  result.differences = differing_conditions(first, second);
  for (const std::string& warning : first.warnings) result.warnings.push_back("first: " + warning);
  for (const std::string& warning : second.warnings) {
    result.warnings.push_back("second: " + warning);
  }
  return result;
}

}  // namespace

bool Comparison::worse() const {
  if (times) return times->ratio.verdict == TimeVerdict::kSlower;
  return std::any_of(arrays.begin(), arrays.end(),
                     [](const ArrayComparison& array) { return is_difference(array.verdict); });
}

Comparison compare_files(const std::filesystem::path& first, const std::filesystem::path& second,
                         const CompareSettings& settings) {
  Comparison comparison{first, second, settings, std::nullopt, {}};
  const bool arrays = holds_arrays(first);
  if (arrays != holds_arrays(second)) {
    throw Error(ErrorKind::kMismatch,
                path_in_quotes(arrays ? first : second) + " holds arrays, but " +
                    path_in_quotes(arrays ? second : first) + " does not",
                "give two reports of run_model --json, or two .npz files");
  }
  if (arrays) {
    comparison.arrays = compare_array_files(first, second, settings.atol, settings.rtol);
  } else {
    comparison.times = compare_reports(first, second, settings.noise);
  }
  return comparison;
}

}  // namespace run_model
