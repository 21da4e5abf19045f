#include <utility>

#include "run_model/run_model/machine/reports.h"
#include "run_model/run_model/measure/timing_report.h"
#include "run_model/run_model/profile/formats.h"
#include "run_model/run_model/report/artifact_json.h"
#include "run_model/run_model/report/report.h"
#include "run_model/run_model/report/results.h"

namespace run_model {
namespace {

Json size_json(int width, int height) {
  Json json = Json::object();
  json.put("width", width);
  json.put("height", height);
  return json;
}

Json range_json(const ValueRange& range) {
  Json json = Json::object();
  json.put("min", range.min);
  json.put("max", range.max);
  json.put("mean", range.mean);
  return json;
}

Json image_json(const PictureReport& report) {
  const PreprocessReport& sides = report.sides;
  Json window = Json::object();
  window.put("x", sides.crop.x);
  window.put("y", sides.crop.y);
  window.put("width", sides.crop.width);
  window.put("height", sides.crop.height);

  Json image = Json::object();
  image.put("path", report.image.string());
  image.put("format", picture_format_name(report.format));
  image.put("width", sides.original_width);
  image.put("height", sides.original_height);
  image.put("channels", report.image_channels);
  image.put("orientation", report.image_orientation);
  image.put("resized", size_json(sides.resized_width, sides.resized_height));
  image.put("window", std::move(window));
  image.put("final", size_json(sides.input_width, sides.input_height));
  return image;
}

Json input_json(const PictureReport& report) {
  Json input = tensor_json(report.input.info);
  input.put("layout", layout_name(report.layout));
  input.put("preprocessing", preprocessing_json(report.preprocessing));
  input.put("range", range_json(report.input.range));
  return input;
}

// Begins an object with the artifact, the threads and the machine.
Json run_report_start(const RunReport& report) {
  Json json = Json::object();
  json.put("schema_version", kReportSchema);
  json.put("model", report.package.model);
  json.put("artifact", package_json(report.package));
  json.put("devices", report.devices);
  json.put("threads", report.threads);
  json.put("thread_plan", thread_plan_json(report.thread_plan));
  json.put("machine", report.machine ? machine_json(*report.machine) : Json());
  if (report.measurement) {
    Json fingerprints = Json::object();
    fingerprints.put("library", report.library_fingerprint);
    fingerprints.put("inputs", report.inputs_fingerprint);
    json.put("fingerprints", std::move(fingerprints));
  }
  return json;
}

// Adds "timing", and "memory", "sweep" and "profile" where they were asked for.
void add_measurements(Json& json, const RunReport& report) {
  const Timing& timing = report.timing;
  Json times = Json::object();
  times.put("load", timing.load);
  if (timing.preprocess > 0) {
    times.put("decode", timing.decode);
    times.put("preprocess", timing.preprocess);
  }
  times.put("run", timing.run);
  if (timing.postprocess > 0) times.put("postprocess", timing.postprocess);
  if (report.measurement) times.put("repeated", timing_json(*report.measurement));
  json.put("timing", std::move(times));
  if (report.memory.enabled()) json.put("memory", memory_json(report.memory));
  if (report.sweep) json.put("sweep", thread_sweep_json(*report.sweep));
  if (report.profile && report.profile_settings.table) {
    json.put("profile", profile_json(*report.profile));
  }
}

}  // namespace

std::string picture_report_json(const PictureReport& report) {
  Json json = run_report_start(report.run);
  json.put("image", image_json(report));
  json.put("input", input_json(report));
  if (report.described) {
    json.put("outputs", tensors_json(report.outputs));
    add_measurements(json, report.run);
    if (report.in_regions) json.put("regions", regions_json(report.regions));
    json.put("results", results_json(report));
    put_files(report, json);
    return json.text();
  }
  Json output = tensor_json(report.output.info);
  output.put("is_distribution", report.output_is_distribution);
  output.put("range", range_json(report.output.range));
  json.put("output", std::move(output));
  add_measurements(json, report.run);
  json.put("top", top_json(report.top));
  return json.text();
}

std::string tensors_report_json(const TensorsReport& report) {
  Json json = run_report_start(report.run);
  json.put("inputs", tensors_json(report.inputs));
  Json outputs = Json::array();
  for (const TensorReport& output : report.outputs) {
    Json item = tensor_json(output.info);
    item.put("range", range_json(output.range));
    outputs.add(std::move(item));
  }
  json.put("outputs", std::move(outputs));
  json.put("outputs_file", text_or_null(report.outputs_file.string()));
  add_measurements(json, report.run);
  return json.text();
}

}  // namespace run_model
