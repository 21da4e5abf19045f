#include "run_model/json_values.h"

namespace run_model {
namespace {

Json path_or_null(const std::filesystem::path& path) {
  return path.empty() ? Json() : Json(path.string());
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

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

// Lists and objects stay on one line where they fit; the whole document never does.
void append(std::string& text, const Json& json, std::size_t depth) {
  const std::string line = on_one_line(json);
  if (!json.is_structured() || (depth > 0 && 2 * depth + line.size() <= kLineWidth)) {
    text += line;
    return;
  }
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
  return {{"library", package.files.library.string()},
          {"graph", path_or_null(package.files.graph)},
          {"params", path_or_null(package.files.params)},
          {"metadata", path_or_null(package.metadata_path)},
          {"target", text_or_null(package.target)},
          {"tvm_target", text_or_null(metadata.target)},
          {"tvm_version", text_or_null(metadata.tvm_version)}};
}

Json tensor_json(const TensorInfo& info) {
  return {{"name", info.name}, {"shape", info.shape}, {"dtype", dtype_name(info.dtype)}};
}

std::string json_text(const Json& json) {
  std::string text;
  append(text, json, 0);
  return text + "\n";
}

}  // namespace run_model
