#include "run_model/check_zoo/golden.h"

#include <map>
#include <set>

namespace run_model {
namespace {

namespace fs = std::filesystem;

// Empty where there is no such folder.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    paths.push_back(at->path());
  }
  return paths;
}

}  // namespace

std::vector<std::string> golden_models(const std::vector<fs::path>& folders) {
  std::set<std::string> models;
  for (const fs::path& folder : folders) {
    for (const fs::path& model : entries(folder)) {
      const std::string name = model.filename().string();
      if (!golden_files({folder}, name).empty()) models.insert(name);
    }
  }
  return {models.begin(), models.end()};
}

std::vector<GoldenFile> golden_files(const std::vector<fs::path>& folders,
                                     const std::string& model) {
  std::map<std::string, fs::path> found;
  for (const fs::path& folder : folders) {
    for (const fs::path& file : entries(folder / model)) {
      if (file.extension() == ".json") found.emplace(file.stem().string(), file);
    }
  }
  std::vector<GoldenFile> files;
  for (const auto& [picture, path] : found) files.push_back({picture, path});
  return files;
}

}  // namespace run_model
