#include "run_model/shared/json_values.h"

#include <algorithm>
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
  if (order == ColorOrder::kGray) return Json::array({decimal(values[0])});
  return Json::array({decimal(values[0]), decimal(values[1]), decimal(values[2])});
}

constexpr std::size_t kLineWidth = 80;

std::string scalar(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string on_one_line(const Json& json) {
  if (!json.is_structured()) return scalar(json);
  std::string text(json.is_object() ? "{" : "[");
  for (const auto& [key, value] : json.items()) {
    if (text.size() > 1) text += ", ";
    if (json.is_object()) text += scalar(key) + ": ";
    text += on_one_line(value);
  }
  return text + (json.is_object() ? "}" : "]");
}

// A list of numbers or words that does not fit on one line fills several.
void append_filled(std::string& text, const Json& list, std::size_t depth) {
  const std::string indent(2 * depth + 2, ' ');
  std::string line = indent;
  text += "[\n";
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string item = scalar(list[i]) + (i + 1 < list.size() ? "," : "");
    if (line.size() > indent.size() && line.size() + 1 + item.size() > kLineWidth) {
      text += line + "\n";
      line = indent;
    }
    line += (line.size() > indent.size() ? " " : "") + item;
  }
  text += line + "\n" + std::string(2 * depth, ' ') + "]";
}

bool is_list_of_scalars(const Json& json) {
  return json.is_array() && std::none_of(json.begin(), json.end(),
                                         [](const Json& item) { return item.is_structured(); });
}

// Lists and objects stay on one line where they fit; the whole document never does.
void append(std::string& text, const Json& json, std::size_t depth) {
  // What is far too long is not worth trying.
  const bool may_fit = !json.is_array() || json.size() <= kLineWidth;
  const std::string line = may_fit ? on_one_line(json) : std::string(kLineWidth + 1, ' ');
  if (!json.is_structured() || (depth > 0 && 2 * depth + line.size() <= kLineWidth)) {
    text += line;
    return;
  }
  if (is_list_of_scalars(json)) return append_filled(text, json, depth);
  const std::string indent(2 * depth, ' ');
  text += json.is_object() ? "{" : "[";
  const char* separator = "\n";
  for (const auto& [key, value] : json.items()) {
    text += separator + indent + "  ";
    if (json.is_object()) text += scalar(key) + ": ";
    append(text, value, depth + 1);
    separator = ",\n";
  }
  text += "\n" + indent + (json.is_object() ? "}" : "]");
}

}  // namespace

Json package_json(const Package& package) {
  const Metadata metadata = package.metadata.value_or(Metadata{});
  return {{"library", shown_path(package.files.library)},
          {"graph", path_or_null(package.files.graph)},
          {"params", path_or_null(package.files.params)},
          {"metadata", path_or_null(package.metadata_path)},
          {"target", text_or_null(package.target)},
          {"tvm_target", text_or_null(metadata.target)},
          {"cpu_features", metadata.features ? Json(*metadata.features) : Json()},
          {"tvm_version", text_or_null(metadata.tvm_version)}};
}

Json tensor_json(const TensorInfo& info) {
  return {{"name", info.name}, {"shape", info.shape}, {"dtype", dtype_name(info.dtype)}};
}

Json preprocessing_json(const Preprocessing& preprocessing) {
  Json json = {{"resizer", resizer_name(preprocessing.resizer)},
               {"fit", fit_name(preprocessing.fit)}};
  if (preprocessing.fit == Fit::kCrop) {
    json["resize"] = preprocessing.resize;
    if (preprocessing.crop != 0) json["crop"] = preprocessing.crop;
  }
  json["color_order"] = color_order_name(preprocessing.color_order);
  json["divide_by"] = decimal(preprocessing.divide_by);
  json["mean"] = channels_json(preprocessing.mean, preprocessing.color_order);
  json["std"] = channels_json(preprocessing.std, preprocessing.color_order);
  return json;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

std::string json_text(const Json& json) {
  std::string text;
  append(text, json, 0);
  return text + "\n";
}

}  // namespace run_model
