#include "run_model/run_model/report_json.h"

#include <utility>

#include "run_model/run_model/measured_report.h"
#include "run_model/shared/json_put.h"

namespace run_model {
namespace {

Json size_json(int width, int height) {
  Json json = Json::object();
  put(json, "width", width);
  put(json, "height", height);
  return json;
}

Json range_json(const ValueRange& range) {
  Json json = Json::object();
  put(json, "min", range.min);
  put(json, "max", range.max);
  put(json, "mean", range.mean);
  return json;
}

Json image_json(const PictureReport& report) {
  const PreprocessReport& sides = report.sides;
  Json window = Json::object();
  put(window, "x", sides.crop.x);
  put(window, "y", sides.crop.y);
  put(window, "width", sides.crop.width);
  put(window, "height", sides.crop.height);

  Json image = Json::object();
  put(image, "path", report.image.string());
  put(image, "format", picture_format_name(report.format));
  put(image, "width", sides.original_width);
  put(image, "height", sides.original_height);
  put(image, "channels", report.image_channels);
  put(image, "orientation", report.image_orientation);
  put_json(image, "resized", size_json(sides.resized_width, sides.resized_height));
  put_json(image, "window", std::move(window));
  put_json(image, "final", size_json(sides.input_width, sides.input_height));
  return image;
}

Json input_json(const PictureReport& report) {
  Json input = tensor_json(report.input.info);
  put(input, "layout", layout_name(report.layout));
  put_json(input, "preprocessing", preprocessing_json(report.preprocessing));
  put_json(input, "range", range_json(report.input.range));
  return input;
}

}  // namespace

std::string picture_report_json(const PictureReport& report) {
  Json json = run_report_start(report.run);
  put_json(json, "image", image_json(report));
  put_json(json, "input", input_json(report));
  Json output = tensor_json(report.output.info);
  put(output, "is_distribution", report.output_is_distribution);
  put_json(output, "range", range_json(report.output.range));
  put_json(json, "output", std::move(output));
  add_measurements(json, report.run);
  Json top = Json::array();
  for (const RankedClass& ranked : report.top) {
    Json item = Json::object();
    put(item, "index", ranked.index);
    put(item, "label", ranked.label);
    put(item, "probability", ranked.probability);
    top.push_back(std::move(item));
  }
  put_json(json, "top", std::move(top));
  return json_text(json);
}

std::string tensors_report_json(const TensorsReport& report) {
  Json json = run_report_start(report.run);
  Json inputs = Json::array();
  for (const TensorInfo& input : report.inputs) inputs.push_back(tensor_json(input));
  put_json(json, "inputs", std::move(inputs));
  Json outputs = Json::array();
  for (const TensorReport& output : report.outputs) {
    Json item = tensor_json(output.info);
    put_json(item, "range", range_json(output.range));
    outputs.push_back(std::move(item));
  }
  put_json(json, "outputs", std::move(outputs));
  put_text_or_null(json, "outputs_file", report.outputs_file.string());
  add_measurements(json, report.run);
  return json_text(json);
}

}  // namespace run_model
