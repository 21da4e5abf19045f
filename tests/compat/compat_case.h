// An artifact that an older TVM release made, with what that release's own runtime answered.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include <run_model/npz.h>

namespace run_model {

// One entry of data/manifest.json or data/relax_manifest.json.
struct CompatCase {
  std::string release;  // "0.12.0"
  std::string name;     // of the network, see networks.py
  std::string form;     // "triple", "single", "tar", "linked", "mlf", "bytecode" or "compiled"
  std::string machine;  // as CMAKE_SYSTEM_PROCESSOR: x86_64, aarch64, armv7l, riscv64
  std::string target;   // TVM's target string
  std::string function_prefix;     // of graphs
  std::string function;            // of Relax executables, to be called
  std::vector<std::string> files;  // without the folder, which is `name`
  std::vector<double> tolerances;  // of each output; 0: every bit has to be the same
};

std::vector<CompatCase> read_manifest();
std::vector<CompatCase> read_relax_manifest();

// Of those, the ones for the machine that this is compiled for.
std::vector<CompatCase> cases_of_this_machine();
std::vector<CompatCase> relax_cases_of_this_machine();

// "v0_12_0_cnn_triple"
std::string compat_test_name(const CompatCase& compat);

// For GoogleTest's messages.
void PrintTo(const CompatCase& compat, std::ostream* out);

// The case's files, inputs and expected outputs, unpacked below a folder.
struct UnpackedCase {
  UnpackedCase(const CompatCase& compat, const std::filesystem::path& folder);

  std::filesystem::path artifact;  // what a user would name: a folder, a library or an archive
  std::filesystem::path inputs_file;
  std::vector<NamedTensor> inputs;
  std::vector<NamedTensor> expected;
};

// What this CPU lacks for the case's code, as a sentence; empty where it lacks nothing.
std::string missing_for(const CompatCase& compat);

}  // namespace run_model
