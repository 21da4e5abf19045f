#include "run_model/run_model/report_json.h"

#include <utility>

#include "run_model/run_model/measured_report.h"
#include "run_model/shared/json.h"

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

}  // namespace

std::string picture_report_json(const PictureReport& report) {
  Json json = run_report_start(report.run);
  json.put("image", image_json(report));
  json.put("input", input_json(report));
  Json output = tensor_json(report.output.info);
  output.put("is_distribution", report.output_is_distribution);
  output.put("range", range_json(report.output.range));
  json.put("output", std::move(output));
  add_measurements(json, report.run);
  Json top = Json::array();
  for (const RankedClass& ranked : report.top) {
    Json item = Json::object();
    item.put("index", ranked.index);
    item.put("label", ranked.label);
    item.put("probability", ranked.probability);
    top.add(std::move(item));
  }
  json.put("top", std::move(top));
  return json.text();
}

std::string tensors_report_json(const TensorsReport& report) {
  Json json = run_report_start(report.run);
  Json inputs = Json::array();
  for (const TensorInfo& input : report.inputs) inputs.add(tensor_json(input));
  json.put("inputs", std::move(inputs));
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
