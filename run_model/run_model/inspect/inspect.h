// What an artifact is, read from its files without loading its code: also those for other machines.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <run_model/graph_executor.h>
#include <run_model/package.h>
#include "run_model/run_model/settings.h"
#include "runtime/loading/library_check.h"

namespace run_model {

struct LibraryFacts {
  std::string machine;  // "x86_64", "armv7l hard-float"
  std::string triple;   // LLVM's; empty where not known
  LibraryKind kind = LibraryKind::kOther;
  std::string glibc;                 // the newest version that it needs: "2.29"; empty for none
  std::vector<std::string> needed;   // other libraries
  std::vector<std::string> missing;  // symbols that this machine could not supply
  std::size_t functions = 0;
  std::vector<std::string> callable;  // of an executable of TVM 0.21 and later: for --function
  bool single_file = false;           // graph and parameters are inside
  std::size_t bytes = 0;
};

struct GraphFacts {
  std::size_t nodes = 0;
  std::size_t function_calls = 0;
  std::vector<TensorInfo> inputs;  // without the parameters
  std::vector<TensorInfo> outputs;
  std::size_t params = 0;
  std::size_t param_bytes = 0;
  std::size_t activation_bytes = 0;  // storage for inputs, intermediates and outputs
};

struct Inspection {
  Package package;
  LibraryFacts library;
  bool has_graph = false;
  GraphFacts graph;
  // What would stop the artifact from running here, a sentence each; empty when nothing was found.
  std::vector<std::string> problems;
  // What the files do not tell about that, a sentence each.
  std::vector<std::string> unknown;
};

// Throws Error(kFile | kFormat | …) where the files cannot be found or understood; whatever keeps
// well-formed files from running on this machine is among the problems instead.
Inspection inspect(const Settings& settings);

// "TVM 0.6 to 0.20" and the like.
std::string library_kind_name(LibraryKind kind);

std::string inspection_text(const Inspection& inspection);
std::string inspection_json(const Inspection& inspection);

}  // namespace run_model
