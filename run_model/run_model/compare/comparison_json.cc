#include <utility>

#include "base/text.h"
#include "run_model/run_model/compare/compare.h"
#include "run_model/shared/json.h"

namespace run_model {
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

void add_times(Json& json, const Comparison& comparison) {
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
    add_times(json, comparison);
  } else {
    add_arrays(json, comparison);
  }
  return json.text();
}

}  // namespace run_model
