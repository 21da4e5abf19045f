#include "artifacts/package_finder.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include <run_model/error.h>
#include <run_model/metadata.h>
#include "artifacts/piece_kind.h"
#include "artifacts/targets.h"
#include "base/file.h"
#include "base/text.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

// What the pieces are called.
struct Names {
  fs::path library;
  fs::path graph;
  fs::path params;
  fs::path archive;
};

// In a folder of their own, the model's name is not in them: compile_model's names, tvmc's, and
// those of TVM's tutorials.
const std::array kFolderNames{
    Names{"model.so", "model.json", "model.params", "model.tar"},
    Names{"mod.so", "mod.json", "mod.params", "module.tar"},
    Names{"deploy_lib.so", "deploy_graph.json", "deploy_param.params", {}},
};

// Of flat files, behind the model's name.
constexpr std::string_view kFlatSuffix = "_tvm";

bool is_file(const fs::path& path) { return is_there(path) && !is_folder(path); }

fs::path with_suffix(fs::path stem, std::string_view suffix) { return stem += suffix; }

Names names_of(const fs::path& stem) {
  return {with_suffix(stem, ".so"), with_suffix(stem, ".json"), with_suffix(stem, ".params"),
          with_suffix(stem, ".tar")};
}

Names in_folder(const fs::path& folder, const Names& names) {
  return {folder / names.library, folder / names.graph, folder / names.params,
          names.archive.empty() ? fs::path() : folder / names.archive};
}

fs::path if_there(const fs::path& path) { return is_file(path) ? path : fs::path(); }

bool in_folder_form(const fs::path& library) {
  return std::any_of(kFolderNames.begin(), kFolderNames.end(),
                     [&](const Names& names) { return library.filename() == names.library; });
}

PackageLocation locate(const Names& names) {
  PackageLocation location;
  location.library = if_there(names.library);
  location.graph = if_there(names.graph);
  location.params = if_there(names.params);
  fs::path library_stem = names.library;
  location.arrays = if_there(with_suffix(library_stem.replace_extension(), "_params.npz"));
  const bool pieces =
      !location.library.empty() || !location.graph.empty() || !location.params.empty();
  if (!pieces) location.archive = if_there(names.archive);
  fs::path stem = location.archive.empty() ? names.library : location.archive;
  location.metadata = if_there(with_suffix(stem.replace_extension(), ".metadata.json"));
  if (location.metadata.empty()) {
    location.metadata = if_there(stem.parent_path() / "metadata.json");
    location.metadata_is_shared =
        !location.metadata.empty() && (!location.archive.empty() || !in_folder_form(names.library));
  }
  return location;
}

bool anything_at(const PackageLocation& location) {
  return !location.archive.empty() || !location.library.empty() || !location.graph.empty() ||
         !location.params.empty();
}

// A graph without parameters is complete: models without any exist, and parameters can be linked
// into the library. The executor says which ones it misses.
PackageLocation complete(const PackageLocation& location, const Names& names) {
  if (!location.archive.empty()) return location;
  const auto fail = [](const fs::path& missing, const fs::path& present, const std::string& hint) {
    throw Error(
        ErrorKind::kFile,
        path_in_quotes(missing) + " is missing, although " + path_in_quotes(present) + " is there",
        hint);
  };
  if (location.library.empty()) {
    fs::path source = names.library;
    const bool is_source = is_file(source.replace_extension(".c"));
    fail(names.library,
         is_source                ? source
         : location.graph.empty() ? location.params
                                  : location.graph,
         is_source ? "this artifact is C source: run make in its folder, see the Makefile there"
                   : "copy all files of the artifact");
  }
  if (location.graph.empty() && !location.params.empty()) {
    fail(names.graph, location.params, "copy all files of the artifact");
  }
  return location;
}

// Nothing where it is unusable, which it is told when it is the one to use.
std::optional<Metadata> usable_metadata(const PackageLocation& location) {
  if (location.metadata.empty()) return std::nullopt;
  try {
    return read_metadata(location.metadata);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// For which device, as PackageRequest names it, a target is.
bool is_for(const TargetCandidate& candidate, const std::string& device) {
  return candidate.device.empty() ? device.empty() || device == "cpu" : candidate.device == device;
}

// The search, which remembers where it looked.
class Search {
 public:
  Search(const std::string& model, const fs::path& artifacts, const std::string& target,
         const std::string& device)
      : model_(model), artifacts_(artifacts), target_(target), device_(device) {}

  PackageLocation run() {
    if (is_file(artifacts_)) return library();
    if (is_folder(artifacts_) && model_.empty()) {
      if (folder(artifacts_) || targets(artifacts_)) return found_;
    } else if (is_folder(artifacts_)) {
      const fs::path inner = artifacts_ / model_;
      if (targets(inner) || folder(inner)) return found_;
      if (stem(with_suffix(inner, kFlatSuffix)) || stem(inner)) return found_;
      if (folder(artifacts_)) return found_;
      const fs::path name =
          artifacts_.has_filename() ? artifacts_.filename() : artifacts_.parent_path().filename();
      if (name == model_ && targets(artifacts_)) return found_;
    } else if (stem(with_suffix(artifacts_, kFlatSuffix)) || stem(artifacts_)) {
      return found_;
    }
    fail_not_found();
  }

 private:
  bool take(const Names& names) {
    looked_for_.push_back(names.library);
    const PackageLocation location = locate(names);
    if (!anything_at(location)) return false;
    found_ = complete(location, names);
    return true;
  }

  bool stem(const fs::path& stem) { return take(names_of(stem)); }

  // What a folder may hold, in the order in which it is looked for.
  std::vector<Names> names_in(const fs::path& folder) const {
    std::vector<Names> all;
    for (const Names& names : kFolderNames) all.push_back(in_folder(folder, names));
    if (!model_.empty()) all.insert(all.end() - 1, names_of(folder / model_));
    return all;
  }

  bool folder(const fs::path& folder) {
    for (const Names& names : names_in(folder)) {
      if (take(names)) return true;
    }
    return false;
  }

  bool targets(const fs::path& folder) {
    looked_for_.push_back(folder / "<target>" / "model.so");
    std::vector<TargetCandidate> candidates;
    std::vector<Names> found;
    for (const fs::path& target : folders_in(folder)) {
      for (const Names& names : kFolderNames) {
        const Names inner = in_folder(target, names);
        const PackageLocation location = locate(inner);
        if (location.library.empty() && location.graph.empty()) continue;
        const std::optional<Metadata> metadata = usable_metadata(location);
        candidates.push_back({target.filename().string(), inner.library,
                              metadata ? metadata->features : std::nullopt,
                              metadata ? metadata->device : ""});
        found.push_back(inner);
        break;
      }
    }
    if (candidates.empty()) return false;
    if (target_.empty()) keep_device(candidates, found, folder);
    const std::size_t chosen = choose_target(candidates, target_, folder);
    take(found[chosen]);
    found_.target = candidates[chosen].name;
    return true;
  }

  // Leaves those for the device that was asked for; without one those for the CPU, or all where
  // there are none.
  void keep_device(std::vector<TargetCandidate>& candidates, std::vector<Names>& found,
                   const fs::path& folder) const {
    std::vector<TargetCandidate> kept;
    std::vector<Names> kept_names;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (!is_for(candidates[i], device_)) continue;
      kept.push_back(candidates[i]);
      kept_names.push_back(found[i]);
    }
    if (!kept.empty()) {
      candidates = std::move(kept);
      found = std::move(kept_names);
    } else if (!device_.empty()) {
      throw Error(ErrorKind::kFile,
                  path_in_quotes(folder) + " has no target for the device " + in_quotes(device_) +
                      ", but " +
                      comma_list(candidates,
                                 [](const TargetCandidate& candidate) { return candidate.name; }),
                  "leave --device out, or compile the model for it");
    }
  }

  static std::vector<fs::path> folders_in(const fs::path& folder) {
    std::vector<fs::path> folders;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      // Hidden ones are unfinished or somebody else's.
      const bool hidden = entry->path().filename().string().starts_with('.');
      if (!hidden && is_folder(entry->path())) folders.push_back(entry->path());
    }
    std::sort(folders.begin(), folders.end());
    return folders;
  }

  PackageLocation library() const {
    fs::path stem = artifacts_;
    Names names = names_of(stem.replace_extension());
    if (is_tar_archive(artifacts_)) {
      // A library of the same name beside it is not meant.
      return locate({.library = {}, .graph = {}, .params = {}, .archive = artifacts_});
    }
    check_piece_kind(artifacts_, PieceKind::kLibrary,
                     "give the artifact's .so, a tar archive, or the folder that holds it");
    names.library = artifacts_;
    return complete(locate(names), names);
  }

  static bool holds_library(const fs::path& folder) {
    return std::any_of(kFolderNames.begin(), kFolderNames.end(),
                       [&](const Names& names) { return is_file(folder / names.library); });
  }

  // Names with which the search would have found something in the folder, in their order.
  std::vector<std::string> models_there() const {
    std::vector<std::string> models;
    for (const fs::path& inner : folders_in(artifacts_)) {
      // A target's folder is called otherwise than its model.
      PackageLocation described;
      described.metadata = if_there(inner / "metadata.json");
      const std::optional<Metadata> metadata = usable_metadata(described);
      if (metadata && !metadata->model.empty() && metadata->model != inner.filename()) continue;
      const std::vector<fs::path> targets = folders_in(inner);
      if (holds_library(inner) || std::any_of(targets.begin(), targets.end(), holds_library)) {
        models.push_back(inner.filename().string());
      }
    }
    std::error_code error;
    for (fs::directory_iterator entry(artifacts_, error), end; !error && entry != end;
         entry.increment(error)) {
      fs::path stem = entry->path();
      // Not every library is a model.
      if (stem.extension() != ".so" || !is_file(stem.replace_extension(".json"))) continue;
      std::string name = stem.stem().string();
      if (name.ends_with(kFlatSuffix)) name.resize(name.size() - kFlatSuffix.size());
      models.push_back(name);
    }
    std::sort(models.begin(), models.end());
    return models;
  }

  [[noreturn]] void fail_not_found() const {
    constexpr std::size_t kMostNames = 10;
    std::vector<std::string> models = models_there();
    std::string hint = "compile it with scripts/compile_model, or give the folder that holds it";
    if (!models.empty()) {
      const bool more = models.size() > kMostNames;
      models.resize(std::min(models.size(), kMostNames));
      hint = "NAME may be one of the models that are there: " +
             comma_list(models, [](const std::string& name) { return in_quotes(name); }) +
             (more ? " …" : "");
    }
    const std::string nothing =
        is_folder(artifacts_) ? "" : ": " + path_in_quotes(artifacts_) + " does not exist";
    throw Error(ErrorKind::kFile,
                "no artifact" + (model_.empty() ? "" : " of " + in_quotes(model_)) + " was found" +
                    nothing + "; looked for " + comma_list(looked_for_, path_in_quotes),
                hint);
  }

  const std::string& model_;
  const fs::path& artifacts_;
  const std::string& target_;
  const std::string& device_;
  std::vector<fs::path> looked_for_;
  PackageLocation found_;
};

}  // namespace

std::string PackageLocation::name() const {
  return (archive.empty() ? library : archive).stem().string();
}

PackageLocation find_package(const std::string& model, const fs::path& artifacts,
                             const std::string& target, const std::string& device) {
  return Search(model, artifacts, target, device).run();
}

}  // namespace run_model
