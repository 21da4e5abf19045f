#include <utility>

#include "base/text.h"
#include "run_model/run_model/compare/compare.h"
#include "run_model/shared/json_put.h"

namespace run_model {
namespace {

Json side_json(const std::filesystem::path& path, const Statistics& run) {
  Json json = Json::object();
  put(json, "file", shown_path(path));
  put(json, "samples", run.count);
  put(json, "median", run.median);
  put(json, "min", run.min);
  put(json, "mean", run.mean);
  put(json, "std", run.std);
  return json;
}

Json file_json(const std::filesystem::path& path) {
  Json json = Json::object();
  put(json, "file", shown_path(path));
  return json;
}

void add_times(Json& json, const Comparison& comparison) {
  const TimesComparison& times = *comparison.times;
  put(json, "kind", "times");
  put_json(json, "first", side_json(comparison.first, times.first));
  put_json(json, "second", side_json(comparison.second, times.second));
  Json ratio = Json::object();
  put(ratio, "estimate", times.ratio.estimate);
  put(ratio, "low", times.ratio.low);
  put(ratio, "high", times.ratio.high);
  put(ratio, "confidence", 0.95);
  put(ratio, "widened", times.ratio.widened);
  put(ratio, "of_medians", times.ratio.of_medians);
  put_json(json, "ratio", std::move(ratio));
  put(json, "noise", comparison.settings.noise);
  put(json, "differences", times.differences);
  put(json, "warnings", times.warnings);
  put(json, "verdict", time_verdict_name(times.ratio.verdict));
}

Json array_json(const ArrayComparison& array) {
  Json json = Json::object();
  put(json, "name", array.name);
  put_text_or_null(json, "first", array.first_form);
  put_text_or_null(json, "second", array.second_form);
  put(json, "verdict", array_verdict_name(array.verdict));
  put(json, "elements", array.elements);
  put(json, "beyond", array.beyond);
  put(json, "not_finite", array.not_finite);
  put(json, "max_absolute", array.max_absolute);
  put(json, "max_relative", array.max_relative);
  return json;
}

void add_arrays(Json& json, const Comparison& comparison) {
  put(json, "kind", "arrays");
  put_json(json, "first", file_json(comparison.first));
  put_json(json, "second", file_json(comparison.second));
  put(json, "atol", comparison.settings.atol);
  put(json, "rtol", comparison.settings.rtol);
  Json arrays = Json::array();
  for (const ArrayComparison& array : comparison.arrays) arrays.push_back(array_json(array));
  put_json(json, "arrays", std::move(arrays));
  put(json, "verdict", comparison.worse() ? "different" : "within tolerance");
}

}  // namespace

std::string comparison_json(const Comparison& comparison) {
  Json json = Json::object();
  put(json, "schema_version", kReportSchema);
  if (comparison.times) {
    add_times(json, comparison);
  } else {
    add_arrays(json, comparison);
  }
  return json_text(json);
}

}  // namespace run_model
