// A compiled model on disk, in any of the forms that people have.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <run_model/graph_executor.h>
#include <run_model/metadata.h>

namespace run_model {

class MemoryFile;

struct PackageRequest {
  std::string model{};                // empty: whatever is at `artifacts`, by its own name
  std::filesystem::path artifacts{};  // a folder, a library, or the start of flat file names
  std::string target{};               // one of the targets of a folder; empty: the one that fits
  bool verify = true;                 // compare sizes and checksums with metadata.json
  bool for_this_cpu = true;           // refuse code that this CPU lacks features for
  // Of several targets those for this kind of device: "cpu", "opencl", "vulkan", "cuda". Empty:
  // those for the CPU, where there are any.
  std::string device{};
};

struct Package {
  std::string model;
  std::string target;  // "native"; empty where nothing tells
  // Graph and params are empty for a single-file library. Valid as long as this object is.
  ModelFiles files;
  std::filesystem::path arrays;         // where files.arrays were read from; empty: there are none
  std::filesystem::path metadata_path;  // empty: there is none
  std::optional<Metadata> metadata;
  // Of an archive: what `files` names, in memory.
  std::vector<std::shared_ptr<const MemoryFile>> unpacked;
};

// Finds the artifact in any of its forms (run_model/README.md lists them), unpacks an archive,
// reads its metadata, and checks that every file is of the kind that its name says and the one that
// the metadata lists. Loads no code. Throws Error(kFile | kFormat | kIncompatible | kMismatch |
// kUsage).
Package open_package(const PackageRequest& request);

// What is said beside an artifact about what its outputs mean.
struct TaskRequest {
  std::filesystem::path tasks{};            // a file, in place of the artifact's; empty: those
  std::optional<double> score_threshold{};  // in place of those of the tasks
  std::filesystem::path labels{};           // of the classes of tasks that have no names for them
};

// The tasks; none where neither the file nor the artifact has any. Throws as read_tasks() and
// read_labels() do.
std::vector<Task> choose_tasks(const TaskRequest& request, const Package& package);

// Compares the metadata, if there is any, with the model that was loaded of `package`: a file that
// was left beside another graph would give wrong preprocessing without a word. Throws
// Error(kMismatch) when it describes other inputs or outputs.
void check_metadata(const Package& package, const GraphExecutor& executor);

}  // namespace run_model
