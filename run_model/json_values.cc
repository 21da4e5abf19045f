#include "run_model/json_values.h"

namespace run_model {
namespace {

Json path_or_null(const std::filesystem::path& path) {
  return path.empty() ? Json() : Json(path.string());
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

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
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace run_model
