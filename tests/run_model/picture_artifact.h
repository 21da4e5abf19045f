// The files of a small classifier of pictures, and what it is run with.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "tests/temporary_folder.h"

namespace run_model {

// Three classes whose scores are the sums of the red, green and blue channel of 4 x 4 pixels (in
// the order in which the network sees them) plus a bias of 0.
class PictureArtifact {
 public:
  PictureArtifact();

  const TemporaryFolder& folder() const { return folder_; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // Rewrites net_tvm.json to call another function of the library, or one that it has not.
  void call(const std::string& function) const;

  // net_tvm.metadata.json, with a section on preprocessing.
  static nlohmann::json metadata();
  void write_metadata(const nlohmann::json& metadata) const;

  // A colour everywhere, red 200, green 10, blue 20.
  static constexpr int kWidth = 8;
  static constexpr int kHeight = 6;

 private:
  TemporaryFolder folder_;
};

// The graph: input "data" float32 [1, 3, 4, 4], parameter "bias" float32 [3], output [1, 3].
nlohmann::json picture_graph(const std::string& function);

// TVM's parameter file with one float32 parameter of that shape.
std::string bias_params(const std::string& name, int elements);

}  // namespace run_model
