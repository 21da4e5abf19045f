// Artifacts that are one tar archive.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include <run_model/graph_executor.h>
#include "base/mapped_file.h"

namespace run_model {

// The pieces of an archive as files in memory, which live as long as `pieces`.
struct UnpackedArchive {
  ModelFiles files;
  std::vector<std::shared_ptr<const MemoryFile>> pieces;
};

// Unpacks, plain or gzipped:
//   - a package of tvmc: mod.so, mod.json and mod.params; also with another stem, model.* for one
//   - a Model Library Format archive (metadata.json of version 1 to 7) that holds a shared library
//     beside the graph of its graph executor and its parameters
// Throws Error(kFormat) for what is damaged or no artifact; Error(kIncompatible) for an archive of
// an executor that run_model has not, and for one whose code is objects or sources, saying how to
// link.
UnpackedArchive unpack_archive(const std::filesystem::path& path);

}  // namespace run_model
