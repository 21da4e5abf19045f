// Where the files of an artifact are.
#pragma once

#include <filesystem>
#include <string>

namespace run_model {

// Only files that exist are named: the library, or the archive that holds it.
struct PackageLocation {
  std::string target;  // the folder's name, where targets have folders
  std::filesystem::path archive;
  std::filesystem::path library;
  std::filesystem::path graph;
  std::filesystem::path params;
  // STEM_params.npz beside STEM.so, as TVM's tutorials keep the parameters of its executables
  // apart.
  std::filesystem::path arrays;
  std::filesystem::path metadata;
  // A metadata.json beside a library of another name than model.so: it is this artifact's only if
  // it lists the library, as for compile_model's model_single.so.
  bool metadata_is_shared = false;

  // The file's name without its suffix: the model's, where nobody says otherwise.
  std::string name() const;
};

// Looks for `model` at `artifacts`, and takes the first of these that is there:
//   1. artifacts is a library: it, with files of the same stem beside it; or a tar archive: it
//   2. artifacts/<model>/<target>/   holding files as below
//   3. artifacts/<model>/            the same
//   4. artifacts/<model>_tvm.*, then artifacts/<model>.*
//   5. artifacts/                    holding files as below; or, where its name is the model's,
//                                    artifacts/<target>/
//   6. artifacts_tvm.*, artifacts.*  (the argument is the start of file names)
// Without a name for the model, 5 is the only form of a folder.
// .* stands for .so, .json and .params, else .tar; a library alone carries the other two inside it.
// A folder holds model.*; or, as tvmc names them, mod.*; or, as TVM's tutorials did, deploy_lib.so,
// deploy_graph.json and deploy_param.params; or <model>.tar; or tvmc's module.tar.
// Of several targets, choose_target (targets.h) takes one of those for `device`, as PackageRequest
// has it. Throws Error(kFile) listing what was looked for, or naming the piece that is missing;
// Error(kFormat) when `artifacts` is some other file.
PackageLocation find_package(const std::string& model, const std::filesystem::path& artifacts,
                             const std::string& target, const std::string& device = "");

}  // namespace run_model
