#include "run_model/run_model/compare/compare.h"

#include <cstdio>
#include <utility>

#include "base/text.h"
#include "run_model/shared/formatted.h"
#include "run_model/shared/json.h"

namespace run_model {
namespace {

std::string side(const char* name, const std::filesystem::path& path, const Statistics& run) {
  return std::string(name) + path_in_quotes(path) + ": median " + formatted("%.4g", run.median) +
         " ms, min " + formatted("%.4g", run.min) + " ms, " + std::to_string(run.count) +
         " samples\n";
}

std::string verdict_line(const TimeRatio& ratio, double noise) {
  const auto percent = [](double share) { return formatted("%.1f %%", 100 * share); };
  switch (ratio.verdict) {
    case TimeVerdict::kFaster:
      return "faster: the second takes " + percent(1 - ratio.estimate) + " less time";
    case TimeVerdict::kSlower:
      return "slower: the second takes " + percent(ratio.estimate - 1) + " more time";
    case TimeVerdict::kNoDifference:
      break;
  }
  return "no difference that can be told from noise (" + formatted("%g %%", 100 * noise) + ")";
}

std::string times_text(const Comparison& comparison) {
  const TimesComparison& times = *comparison.times;
  const TimeRatio& ratio = times.ratio;
  std::string text = side("First:  ", comparison.first, times.first) +
                     side("Second: ", comparison.second, times.second);
  text += "Ratio:  " + formatted("%.3f", ratio.estimate) + " (95 % interval " +
          formatted("%.3f", ratio.low) + " to " + formatted("%.3f", ratio.high) +
          "; of the medians " + formatted("%.3f", ratio.of_medians) + ")\n";
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
  text += ", largest difference " + formatted("%.3g", array.max_absolute) + ", relative " +
          formatted("%.3g", array.max_relative);
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
         formatted("%g", comparison.settings.atol) + ", rtol " +
         formatted("%g", comparison.settings.rtol) + ")\n";
}

}  // namespace

std::string comparison_text(const Comparison& comparison) {
  return comparison.times ? times_text(comparison) : arrays_text(comparison);
}

namespace {

Json side_json(const std::filesystem::path& path, const Statistics& run) {
  Json json = Json::object();
  json.put("file", shown_path(path));
  json.put("samples", run.count);
  json.put("median", run.median);
  json.put("min", run.min);
  json.put("mean", run.mean);
  json.put("std", run.std);
  return json;
}

Json file_json(const std::filesystem::path& path) {
  Json json = Json::object();
  json.put("file", shown_path(path));
  return json;
}

void add_compared_times(Json& json, const Comparison& comparison) {
  const TimesComparison& times = *comparison.times;
  json.put("kind", "times");
  json.put("first", side_json(comparison.first, times.first));
  json.put("second", side_json(comparison.second, times.second));
  Json ratio = Json::object();
  ratio.put("estimate", times.ratio.estimate);
  ratio.put("low", times.ratio.low);
  ratio.put("high", times.ratio.high);
  ratio.put("confidence", 0.95);
  ratio.put("widened", times.ratio.widened);
  ratio.put("of_medians", times.ratio.of_medians);
  json.put("ratio", std::move(ratio));
  json.put("noise", comparison.settings.noise);
  json.put("differences", times.differences);
  json.put("warnings", times.warnings);
  json.put("verdict", time_verdict_name(times.ratio.verdict));
}

Json array_json(const ArrayComparison& array) {
  Json json = Json::object();
  json.put("name", array.name);
  json.put("first", text_or_null(array.first_form));
  json.put("second", text_or_null(array.second_form));
  json.put("verdict", array_verdict_name(array.verdict));
  json.put("elements", array.elements);
  json.put("beyond", array.beyond);
  json.put("not_finite", array.not_finite);
  json.put("max_absolute", array.max_absolute);
  json.put("max_relative", array.max_relative);
  return json;
}

void add_arrays(Json& json, const Comparison& comparison) {
  json.put("kind", "arrays");
  json.put("first", file_json(comparison.first));
  json.put("second", file_json(comparison.second));
  json.put("atol", comparison.settings.atol);
  json.put("rtol", comparison.settings.rtol);
  Json arrays = Json::array();
  for (const ArrayComparison& array : comparison.arrays) arrays.add(array_json(array));
  json.put("arrays", std::move(arrays));
  json.put("verdict", comparison.worse() ? "different" : "within tolerance");
}

}  // namespace

std::string comparison_json(const Comparison& comparison) {
  Json json = Json::object();
  json.put("schema_version", kReportSchema);
  if (comparison.times) {
    add_compared_times(json, comparison);
  } else {
    add_arrays(json, comparison);
  }
  return json.text();
}

}  // namespace run_model
