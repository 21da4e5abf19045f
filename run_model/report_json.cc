#include "run_model/report_json.h"

#include <optional>

#include "run_model/json_values.h"
#include "run_model/measured_report.h"

namespace run_model {
namespace {

Json size_json(int width, int height) { return {{"width", width}, {"height", height}}; }

Json range_json(const ValueRange& range) {
  return {{"min", range.min}, {"max", range.max}, {"mean", range.mean}};
}

Json image_json(const PictureReport& report) {
  const PreprocessReport& sides = report.sides;
  Json image = {{"path", report.image.string()},     {"format", picture_format_name(report.format)},
                {"width", sides.original_width},     {"height", sides.original_height},
                {"channels", report.image_channels}, {"orientation", report.image_orientation}};
  image["resized"] = size_json(sides.resized_width, sides.resized_height);
  image["window"] = {{"x", sides.crop.x},
                     {"y", sides.crop.y},
                     {"width", sides.crop.width},
                     {"height", sides.crop.height}};
  image["final"] = size_json(sides.input_width, sides.input_height);
  return image;
}

Json input_json(const PictureReport& report) {
  Json input = tensor_json(report.input.info);
  input["layout"] = layout_name(report.layout);
  input["preprocessing"] = preprocessing_json(report.preprocessing);
  input["range"] = range_json(report.input.range);
  return input;
}

}  // namespace

std::string picture_report_json(const PictureReport& report) {
  Json json = run_report_start(report.run);
  json["image"] = image_json(report);
  json["input"] = input_json(report);
  Json output = tensor_json(report.output.info);
  output["is_distribution"] = report.output_is_distribution;
  output["range"] = range_json(report.output.range);
  json["output"] = output;
  add_measurements(json, report.run);
  json["top"] = Json::array();
  for (const RankedClass& ranked : report.top) {
    json["top"].push_back(
        {{"index", ranked.index}, {"label", ranked.label}, {"probability", ranked.probability}});
  }
  return json_text(json);
}

std::string tensors_report_json(const TensorsReport& report) {
  Json json = run_report_start(report.run);
  json["inputs"] = Json::array();
  for (const TensorInfo& input : report.inputs) json["inputs"].push_back(tensor_json(input));
  json["outputs"] = Json::array();
  for (const TensorReport& output : report.outputs) {
    Json item = tensor_json(output.info);
    item["range"] = range_json(output.range);
    json["outputs"].push_back(item);
  }
  const bool written = !report.outputs_file.empty();
  json["outputs_file"] = written ? Json(report.outputs_file.string()) : Json();
  add_measurements(json, report.run);
  return json_text(json);
}

}  // namespace run_model
