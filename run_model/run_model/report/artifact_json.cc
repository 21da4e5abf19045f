#include "run_model/run_model/report/artifact_json.h"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/text.h"

namespace run_model {
namespace {

Json path_or_null(const std::filesystem::path& path) {
  return path.empty() ? Json() : Json(shown_path(path));
}

// The shortest decimal that is this float32: 0.485 rather than 0.48500001430511475.
double decimal(float value) {
  std::array<char, 32> text{};
  for (int digits = 6; digits <= 9; ++digits) {
    std::snprintf(text.data(), text.size(), "%.*g", digits, static_cast<double>(value));
    if (std::strtof(text.data(), nullptr) == value) break;
  }
  return std::strtod(text.data(), nullptr);
}

Json channels_json(const std::array<float, 3>& values, ColorOrder order) {
  Json json = Json::array({decimal(values[0])});
  if (order == ColorOrder::kGray) return json;
  json.add(decimal(values[1]));
  json.add(decimal(values[2]));
  return json;
}

}  // namespace

Json package_json(const Package& package) {
  const Metadata metadata = package.metadata.value_or(Metadata{});
  return Json::object({{"library", shown_path(package.files.library)},
                       {"graph", path_or_null(package.files.graph)},
                       {"params", path_or_null(package.files.params)},
                       {"metadata", path_or_null(package.metadata_path)},
                       {"target", text_or_null(package.target)},
                       {"tvm_target", text_or_null(metadata.target)},
                       {"cpu_features", metadata.features},
                       {"tvm_version", text_or_null(metadata.tvm_version)}});
}

Json tensor_json(const TensorInfo& info) {
  return Json::object(
      {{"name", info.name}, {"shape", info.shape}, {"dtype", dtype_name(info.dtype)}});
}

Json tensors_json(const std::vector<TensorInfo>& tensors) {
  Json json = Json::array();
  for (const TensorInfo& tensor : tensors) json.add(tensor_json(tensor));
  return json;
}

Json preprocessing_json(const Preprocessing& preprocessing) {
  Json json = Json::object(
      {{"resizer", resizer_name(preprocessing.resizer)}, {"fit", fit_name(preprocessing.fit)}});
  if (crops(preprocessing.fit)) {
    json.put("resize", preprocessing.resize);
    if (preprocessing.crop != 0) json.put("crop", preprocessing.crop);
    if (preprocessing.crop_start == CropStart::kDown) json.put("rounding", "down");
  }
  json.put("color_order", color_order_name(preprocessing.color_order));
  json.put("divide_by", decimal(preprocessing.divide_by));
  json.put("mean", channels_json(preprocessing.mean, preprocessing.color_order));
  json.put("std", channels_json(preprocessing.std, preprocessing.color_order));
  return json;
}

}  // namespace run_model
