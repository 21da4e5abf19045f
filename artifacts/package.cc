#include <run_model/package.h>

#include <utility>

#include <run_model/error.h>
#include <run_model/labels.h>
#include <run_model/npz.h>
#include "artifacts/archive_package.h"
#include "artifacts/checksum.h"
#include "artifacts/package_finder.h"
#include "artifacts/piece_kind.h"
#include "artifacts/targets.h"
#include "base/file.h"
#include "base/text.h"

namespace run_model {
namespace {

void check_names(const Package& package, const PackageRequest& request) {
  const std::string& model = package.metadata->model;
  if (!model.empty() && !request.model.empty() && model != request.model) {
    throw Error(ErrorKind::kMismatch,
                path_in_quotes(package.metadata_path) + " says that this is the model " +
                    in_quotes(model) + ", not " + in_quotes(request.model),
                "give the artifact's own name, or another artifact");
  }
}

void check_target(const Package& package, const PackageRequest& request) {
  if (request.target.empty() || package.target == request.target) return;
  const std::string found = package.target.empty() ? "of an unnamed target"
                                                   : "of the target " + in_quotes(package.target);
  throw Error(ErrorKind::kMismatch,
              path_in_quotes(package.files.library) + " is " + found + ", but --target asks for " +
                  in_quotes(request.target),
              "leave --target out, or give the folder that holds that target");
}

// The metadata, if there is any and it is about this library.
std::optional<Metadata> metadata_of(const PackageLocation& location) {
  if (location.metadata.empty()) return std::nullopt;
  if (!location.metadata_is_shared) return read_metadata(location.metadata);
  const std::filesystem::path& file =
      location.archive.empty() ? location.library : location.archive;
  try {
    Metadata metadata = read_metadata(location.metadata);
    if (metadata.files.contains(file.filename().string())) return metadata;
  } catch (const Error&) {
    // Nothing says that this file has to do with the artifact.
  }
  return std::nullopt;
}

// Whether the metadata lists the C source in the place of the library: any compiler may have made
// that one.
bool is_built_from_source(std::filesystem::path library, const Metadata& metadata) {
  return library.extension() == ".so" && !metadata.files.contains(library.filename().string()) &&
         metadata.files.contains(library.replace_extension(".c").filename().string());
}

// Without its parameters a graph would have them as inputs.
void refuse_missing_files(const Package& package) {
  for (const char* suffix : {".json", ".params"}) {
    std::filesystem::path piece = package.files.library;
    piece.replace_extension(suffix);
    if (package.metadata->files.contains(piece.filename().string()) && !is_there(piece)) {
      throw Error(ErrorKind::kFile,
                  path_in_quotes(piece) + " is missing, although " +
                      path_in_quotes(package.metadata_path) + " lists it",
                  "copy all files of the artifact");
    }
  }
}

void verify(const Package& package, const PackageLocation& location) {
  if (!location.archive.empty()) {
    verify_file(location.archive, *package.metadata, package.metadata_path);
    return;
  }
  for (const std::filesystem::path* file :
       {&package.files.library, &package.files.graph, &package.files.params, &package.arrays}) {
    if (file->empty() || is_built_from_source(*file, *package.metadata)) continue;
    verify_file(*file, *package.metadata, package.metadata_path);
  }
}

void read_arrays(Package& package) {
  for (NamedTensor& named : read_npz(package.arrays)) {
    package.files.arrays.push_back({std::move(named.name), std::move(named.tensor)});
  }
}

}  // namespace

Package open_package(const PackageRequest& request) {
  const PackageLocation location =
      find_package(request.model, request.artifacts, request.target, request.device);
  Package package;
  package.model = request.model;
  package.target = location.target;
  if (location.archive.empty()) {
    package.files = {location.library, location.graph, location.params, {}};
    package.arrays = location.arrays;
  } else {
    UnpackedArchive archive = unpack_archive(location.archive);
    package.files = std::move(archive.files);
    package.unpacked = std::move(archive.pieces);
  }
  package.metadata = metadata_of(location);
  if (package.metadata) {
    package.metadata_path = location.metadata;
    check_names(package, request);
    if (package.model.empty()) package.model = package.metadata->model;
    if (package.target.empty()) package.target = package.metadata->target_name;
  }
  if (package.model.empty()) package.model = location.name();
  check_target(package, request);
  if (request.for_this_cpu) check_cpu(package);

  // What a file is comes before its checksum: it says more about what went wrong.
  const ModelFiles& files = package.files;
  check_piece_kind(files.library, PieceKind::kLibrary);
  if (!files.graph.empty()) check_piece_kind(files.graph, PieceKind::kGraph);
  if (!files.params.empty()) check_piece_kind(files.params, PieceKind::kParams);
  if (package.metadata) {
    if (location.archive.empty()) refuse_missing_files(package);
    if (request.verify) verify(package, location);
  }
  // A graph has its parameters elsewhere: the file beside it is not its own.
  if (files.graph.empty() && !package.arrays.empty()) read_arrays(package);
  return package;
}

std::vector<Task> choose_tasks(const TaskRequest& request, const Package& package) {
  std::vector<Task> tasks;
  if (!request.tasks.empty()) {
    tasks = read_tasks(request.tasks);
  } else if (package.metadata) {
    tasks = package.metadata->tasks;
  }
  for (Task& task : tasks) {
    if (request.score_threshold) set_score_threshold(task, *request.score_threshold);
    if (!request.labels.empty() && lacks_labels(task)) task.labels = read_labels(request.labels);
  }
  return tasks;
}

}  // namespace run_model
