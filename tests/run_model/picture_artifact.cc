#include "tests/run_model/picture_artifact.h"

#include <vector>

#include "tests/runtime/test_graphs.h"
#include "tests/runtime/test_params.h"

namespace run_model {

using nlohmann::json;

json picture_graph(const std::string& function) {
  using testing_graphs::call_node;
  using testing_graphs::input_node;
  json graph = testing_graphs::graph_of(
      {input_node("data"), input_node("bias"), call_node("scores", function, {{0, 0}, {1, 0}})},
      {0, 1, 2}, {{2, 0}});
  graph["attrs"]["shape"][1] = {{1, 3, 4, 4}, {3}, {1, 3}};
  return graph;
}

std::string bias_params(const std::string& name, int elements) {
  return testing_params::float_params({{name, std::vector<float>(elements, 0.0F)}}, true);
}

PictureArtifact::PictureArtifact() {
  folder_.write("net_tvm.so", TemporaryFolder::read(PICTURE_MODEL));
  folder_.write("net_tvm.params", bias_params("bias", 3));
  call("fused_channel_sums");
  std::string picture = "P6 8 6 255\n";
  for (int i = 0; i < kWidth * kHeight; ++i) picture += {'\xC8', '\x0A', '\x14'};
  folder_.write("red.ppm", picture);
  folder_.write("labels.txt", "red things\ngreen things\nblue things\n");
}

void PictureArtifact::call(const std::string& function) const {
  folder_.write("net_tvm.json", picture_graph(function).dump());
}

json PictureArtifact::metadata() {
  return json::parse(R"({
    "schema_version": 1, "model": "net",
    "inputs": [{"name": "data", "shape": [1, 3, 4, 4], "dtype": "float32", "layout": "NCHW"}],
    "outputs": [{"name": "scores", "shape": [1, 3], "dtype": "float32"}],
    "preprocessing": {"resizer": "pil-bilinear", "fit": "crop", "resize": 4, "crop": 4,
                      "color_order": "BGR", "divide_by": 1.0, "mean": [0, 0, 0],
                      "std": [1600, 1600, 1600]}})");
}

void PictureArtifact::write_metadata(const json& metadata) const {
  folder_.write("net_tvm.metadata.json", metadata.dump());
}

}  // namespace run_model
