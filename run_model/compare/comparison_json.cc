#include "run_model/compare/compare.h"
#include "run_model/json_values.h"
#include "runtime/quoted.h"

namespace run_model {
namespace {

Json side_json(const std::filesystem::path& path, const Statistics& run) {
  return {{"file", shown_path(path)}, {"samples", run.count}, {"median", run.median},
          {"min", run.min},           {"mean", run.mean},     {"std", run.std}};
}

void add_times(Json& json, const Comparison& comparison) {
  const TimesComparison& times = *comparison.times;
  json["kind"] = "times";
  json["first"] = side_json(comparison.first, times.first);
  json["second"] = side_json(comparison.second, times.second);
  json["ratio"] = {{"estimate", times.ratio.estimate}, {"low", times.ratio.low},
                   {"high", times.ratio.high},         {"confidence", 0.95},
                   {"widened", times.ratio.widened},   {"of_medians", times.ratio.of_medians}};
  json["noise"] = comparison.settings.noise;
  json["differences"] = times.differences;
  json["warnings"] = times.warnings;
  json["verdict"] = time_verdict_name(times.ratio.verdict);
}

Json array_json(const ArrayComparison& array) {
  return {{"name", array.name},
          {"first", text_or_null(array.first_form)},
          {"second", text_or_null(array.second_form)},
          {"verdict", array_verdict_name(array.verdict)},
          {"elements", array.elements},
          {"beyond", array.beyond},
          {"not_finite", array.not_finite},
          {"max_absolute", array.max_absolute},
          {"max_relative", array.max_relative}};
}

void add_arrays(Json& json, const Comparison& comparison) {
  json["kind"] = "arrays";
  json["first"] = {{"file", shown_path(comparison.first)}};
  json["second"] = {{"file", shown_path(comparison.second)}};
  json["atol"] = comparison.settings.atol;
  json["rtol"] = comparison.settings.rtol;
  json["arrays"] = Json::array();
  for (const ArrayComparison& array : comparison.arrays) json["arrays"].push_back(array_json(array));
  json["verdict"] = comparison.worse() ? "different" : "within tolerance";
}

}  // namespace

std::string comparison_json(const Comparison& comparison) {
  Json json = {{"schema_version", kReportSchema}};
  if (comparison.times) {
    add_times(json, comparison);
  } else {
    add_arrays(json, comparison);
  }
  return json_text(json);
}

}  // namespace run_model
