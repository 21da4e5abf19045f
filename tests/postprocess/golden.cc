#include "tests/postprocess/golden.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace run_model {

using nlohmann::json;

const json& golden() {
  static const json cases = json::parse(
      std::ifstream(std::string(RUN_MODEL_SOURCE_DIR) + "/tests/postprocess/data/golden.json"));
  return cases.at("cases");
}

PreprocessReport picture_of(const json& field) {
  PreprocessReport picture;
  picture.original_width = field.at("width");
  picture.original_height = field.at("height");
  picture.input_width = field.at("input_width");
  picture.input_height = field.at("input_height");
  picture.scale_x = field.at("scale_x");
  picture.scale_y = field.at("scale_y");
  picture.offset_x = field.at("offset_x");
  picture.offset_y = field.at("offset_y");
  return picture;
}

std::vector<NetworkOutput> outputs_of(const json& field) {
  std::vector<NetworkOutput> outputs;
  for (const auto& [name, value] : field.items()) {
    NetworkOutput output;
    output.name = name;
    output.tensor = Tensor::empty(value.at("shape").get<std::vector<std::int64_t>>(),
                                  DLDataType{kDLFloat, 32, 1});
    const auto data = value.at("data").get<std::vector<float>>();
    std::copy(data.begin(), data.end(), output.tensor.elements<float>().begin());
    outputs.push_back(std::move(output));
  }
  return outputs;
}

}  // namespace run_model
