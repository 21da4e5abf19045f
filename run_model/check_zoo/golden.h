// Which golden cases there are.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace run_model {

struct GoldenFile {
  std::string picture;  // "chelsea"
  std::filesystem::path path;
};

// The models that have at least one case <folder>/<model>/<picture>.json, sorted.
std::vector<std::string> golden_models(const std::vector<std::filesystem::path>& folders);

// The cases of a model, sorted by picture. Where two folders have the same picture, the earlier
// folder counts.
std::vector<GoldenFile> golden_files(const std::vector<std::filesystem::path>& folders,
                                     const std::string& model);

}  // namespace run_model
