#include "artifacts/package_finder.h"

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <vector>

#include "artifacts/metadata.h"
#include "artifacts/piece_kind.h"
#include "artifacts/target_choice.h"
#include "runtime/error.h"
#include "runtime/quoted.h"

namespace run_model {
namespace {

namespace fs = std::filesystem;

// compile_model's name for the pieces, and tvmc's.
constexpr std::array kFolderStems{"model", "mod"};

bool is_file(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) && !fs::is_directory(path, error);
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

fs::path with_suffix(fs::path stem, const char* suffix) { return stem += suffix; }

fs::path if_there(const fs::path& path) { return is_file(path) ? path : fs::path(); }

bool in_folder_form(const fs::path& stem) {
  return std::find(kFolderStems.begin(), kFolderStems.end(), stem.filename()) != kFolderStems.end();
}

PackageLocation locate(const fs::path& stem) {
  PackageLocation location;
  location.library = if_there(with_suffix(stem, ".so"));
  location.graph = if_there(with_suffix(stem, ".json"));
  location.params = if_there(with_suffix(stem, ".params"));
  location.metadata = if_there(with_suffix(stem, ".metadata.json"));
  if (location.metadata.empty()) {
    location.metadata = if_there(stem.parent_path() / "metadata.json");
    location.metadata_is_shared = !location.metadata.empty() && !in_folder_form(stem);
  }
  return location;
}

bool anything_at(const PackageLocation& location) {
  return !location.library.empty() || !location.graph.empty() || !location.params.empty();
}

// A graph without parameters is complete: models without any exist, and parameters can be linked
// into the library. The executor says which ones it misses.
PackageLocation complete(const PackageLocation& location, const fs::path& stem) {
  const auto fail = [](const fs::path& missing, const fs::path& present) {
    throw Error(
        ErrorCode::kFile,
        path_in_quotes(missing) + " is missing, although " + path_in_quotes(present) + " is there",
        "copy all files of the artifact");
  };
  if (location.library.empty()) {
    fail(with_suffix(stem, ".so"), location.graph.empty() ? location.params : location.graph);
  }
  if (location.graph.empty() && !location.params.empty()) {
    fail(with_suffix(stem, ".json"), location.params);
  }
  return location;
}

// What the metadata lists; nothing where it is unusable, which it is told when it is the one to use.
std::optional<std::vector<std::string>> features_of(const PackageLocation& location) {
  if (location.metadata.empty()) return std::nullopt;
  try {
    return read_metadata(location.metadata).features;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The search, which remembers where it looked.
class Search {
 public:
  Search(const std::string& model, const fs::path& artifacts, const std::string& target)
      : model_(model), artifacts_(artifacts), target_(target) {}

  PackageLocation run() {
    if (is_file(artifacts_)) return library();
    if (is_folder(artifacts_) && model_.empty()) {
      if (folder(artifacts_) || targets(artifacts_)) return found_;
    } else if (is_folder(artifacts_)) {
      const fs::path inner = artifacts_ / model_;
      if (targets(inner) || folder(inner)) return found_;
      if (stem(artifacts_ / (model_ + "_tvm")) || stem(artifacts_ / model_)) return found_;
      if (folder(artifacts_)) return found_;
      const fs::path name =
          artifacts_.has_filename() ? artifacts_.filename() : artifacts_.parent_path().filename();
      if (name == model_ && targets(artifacts_)) return found_;
    } else if (stem(with_suffix(artifacts_, "_tvm")) || stem(artifacts_)) {
      return found_;
    }
    fail_not_found();
  }

 private:
  bool stem(const fs::path& stem) {
    looked_for_.push_back(with_suffix(stem, ".so"));
    const PackageLocation location = locate(stem);
    if (!anything_at(location)) return false;
    found_ = complete(location, stem);
    return true;
  }

  bool folder(const fs::path& folder) {
    for (const char* name : kFolderStems) {
      if (stem(folder / name)) return true;
    }
    return false;
  }

  bool targets(const fs::path& folder) {
    looked_for_.push_back(folder / "<target>" / "model.so");
    std::vector<TargetCandidate> candidates;
    std::vector<fs::path> stems;
    for (const fs::path& target : folders_in(folder)) {
      for (const char* name : kFolderStems) {
        const PackageLocation location = locate(target / name);
        if (!anything_at(location)) continue;
        candidates.push_back({target.filename().string(), with_suffix(target / name, ".so"),
                              features_of(location)});
        stems.push_back(target / name);
        break;
      }
    }
    if (candidates.empty()) return false;
    const std::size_t chosen = choose_target(candidates, target_, folder);
    stem(stems[chosen]);
    found_.target = candidates[chosen].name;
    return true;
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
    if (is_tar_archive(artifacts_)) {
      throw Error(
          ErrorCode::kFormat,
          path_in_quotes(artifacts_) + " is a tar archive, and a library or a folder was expected",
          "unpack it with tar -xf and give the folder with its mod.so");
    }
    check_piece_kind(artifacts_, PieceKind::kLibrary,
                     "give the artifact's .so or the folder that holds it");
    fs::path stem = artifacts_;
    PackageLocation location = locate(stem.replace_extension());
    location.library = artifacts_;
    return complete(location, stem);
  }

  [[noreturn]] void fail_not_found() const {
    std::string list;
    for (const fs::path& path : looked_for_) {
      if (!list.empty()) list += ", ";
      list += path_in_quotes(path);
    }
    const std::string nothing =
        is_folder(artifacts_) ? "" : ": " + path_in_quotes(artifacts_) + " does not exist";
    throw Error(ErrorCode::kFile,
                "no artifact" + (model_.empty() ? "" : " of " + in_quotes(model_)) + " was found" +
                    nothing + "; looked for " + list,
                "compile it with scripts/compile_model, or give the folder that holds it");
  }

  const std::string& model_;
  const fs::path& artifacts_;
  const std::string& target_;
  std::vector<fs::path> looked_for_;
  PackageLocation found_;
};

}  // namespace

PackageLocation find_package(const std::string& model, const fs::path& artifacts,
                             const std::string& target) {
  return Search(model, artifacts, target).run();
}

}  // namespace run_model
