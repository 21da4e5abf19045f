#include <array>
#include <cstdio>

#include "base/text.h"
#include "run_model/run_model/compare/compare.h"

namespace run_model {
namespace {

std::string number(const char* format, double value) {
  std::array<char, 48> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string side(const char* name, const std::filesystem::path& path, const Statistics& run) {
  return std::string(name) + path_in_quotes(path) + ": median " + number("%.4g", run.median) +
         " ms, min " + number("%.4g", run.min) + " ms, " + std::to_string(run.count) + " samples\n";
}

std::string verdict_line(const TimeRatio& ratio, double noise) {
  const auto percent = [](double share) { return number("%.1f %%", 100 * share); };
  switch (ratio.verdict) {
    case TimeVerdict::kFaster:
      return "faster: the second takes " + percent(1 - ratio.estimate) + " less time";
    case TimeVerdict::kSlower:
      return "slower: the second takes " + percent(ratio.estimate - 1) + " more time";
    case TimeVerdict::kNoDifference:
      break;
  }
  return "no difference that can be told from noise (" + number("%g %%", 100 * noise) + ")";
}

std::string times_text(const Comparison& comparison) {
  const TimesComparison& times = *comparison.times;
  const TimeRatio& ratio = times.ratio;
  std::string text = side("First:  ", comparison.first, times.first) +
                     side("Second: ", comparison.second, times.second);
  text += "Ratio:  " + number("%.3f", ratio.estimate) + " (95 % interval " +
          number("%.3f", ratio.low) + " to " + number("%.3f", ratio.high) + "; of the medians " +
          number("%.3f", ratio.of_medians) + ")\n";
  for (const std::string& difference : times.differences) {
    text += "Not the same " + difference + "\n";
  }
  for (const std::string& warning : times.warnings) {
    text += "Warning, " + in_quotes(warning, 200) + "\n";
  }
  return text + "Verdict: " + verdict_line(ratio, comparison.settings.noise) + "\n";
}

std::string array_line(const ArrayComparison& array) {
  std::string text = in_quotes(array.name) + ": " + std::string(array_verdict_name(array.verdict));
  switch (array.verdict) {
    case ArrayVerdict::kAnotherForm:
      return text + ": " + array.first_form + ", then " + array.second_form;
    case ArrayVerdict::kOnlyInFirst:
      return text + ": " + array.first_form;
    case ArrayVerdict::kOnlyInSecond:
      return text + ": " + array.second_form;
    case ArrayVerdict::kEqual:
      return text + ", " + array.first_form;
    case ArrayVerdict::kWithin:
    case ArrayVerdict::kBeyond:
      break;
  }
  if (array.beyond > 0) {
    text += " in " + std::to_string(array.beyond) + " of " + std::to_string(array.elements);
  }
  text += ", largest difference " + number("%.3g", array.max_absolute) + ", relative " +
          number("%.3g", array.max_relative);
  if (array.not_finite > 0) {
    text += ", NaN or infinite in " + std::to_string(array.not_finite);
  }
  return text;
}

std::string arrays_text(const Comparison& comparison) {
  std::string text = "First:  " + path_in_quotes(comparison.first) +
                     "\nSecond: " + path_in_quotes(comparison.second) + "\n";
  for (const ArrayComparison& array : comparison.arrays) text += array_line(array) + "\n";
  return text + "Verdict: " + (comparison.worse() ? "they differ" : "they agree") + " (atol " +
         number("%g", comparison.settings.atol) + ", rtol " +
         number("%g", comparison.settings.rtol) + ")\n";
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  return comparison.times ? times_text(comparison) : arrays_text(comparison);
}

}  // namespace run_model
