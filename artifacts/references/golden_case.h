// A golden case: what a network gives for one picture, by a reference outside this project.
//
// PICTURE.json says what was computed from what. Of a classifier (schema version 1) PICTURE.npy
// beside it holds the whole first output as float32; of a network with tasks (version 2) the JSON
// has the tasks and what they find, and PICTURE.N.npy the pixels of result N where it is a map or
// an image. scripts/make_golden writes them with ONNX Runtime or LiteRT, Pillow, OpenCV and NumPy.
#pragma once

#include <dlpack/dlpack.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <run_model/preprocessing.h>
#include <run_model/score_comparison.h>
#include <run_model/task.h>
#include <run_model/task_result.h>
#include <run_model/tensor.h>

namespace run_model {

inline constexpr int kGoldenSchema = 1;
inline constexpr int kGoldenTasksSchema = 2;

struct GoldenPicture {
  std::string file;    // a name without folders
  std::string sha256;  // of the file
};

struct GoldenInput {
  std::string name;
  std::vector<std::int64_t> shape;
  DLDataType dtype{};
  Layout layout = Layout::kNchw;
  std::string sha256;  // of the tensor's bytes, little-endian, row-major
};

struct GoldenClass {
  std::size_t index = 0;
  std::string label;
  double probability = 0.0;
};

struct GoldenCase {
  std::string name;  // the picture's, from the file's name: "chelsea"
  std::filesystem::path path;
  std::string model;
  std::string source_sha256;  // of the ONNX or TensorFlow Lite file that the reference ran
  GoldenPicture picture;
  Preprocessing preprocessing;
  GoldenInput input;

  // With tasks there are these,
  std::vector<Task> tasks;
  std::vector<TaskResult> results;  // one for each

  // and else the first output.
  ScoreKind kind = ScoreKind::kLogits;
  std::vector<std::int64_t> output_shape;
  Tensor output;                 // float32, finite, of that shape
  std::vector<GoldenClass> top;  // the reference's best classes, best first
};

// Reads PICTURE.json and the .npy files that belong to it. Throws Error(kFile), Error(kFormat) when
// something is missing, malformed or does not belong together: an array of another shape or with
// NaN, a top list that is not the array's. Throws Error(kIncompatible) for another schema version.
GoldenCase read_golden_case(const std::filesystem::path& path);

// The JSON part alone, from memory; `output` and the pixels of results stay undefined. `name`
// stands for the file in messages.
GoldenCase parse_golden_case(std::string_view text, const std::string& name);

}  // namespace run_model
