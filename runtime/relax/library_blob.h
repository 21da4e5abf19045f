// The bytes that `ex.export_library("model.so")` hides in a library's symbol
// __tvm_ffi__library_bin: the tree of modules with the executable of the Relax virtual machine in
// it.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace run_model {

// Where the symbol lies: its name since TVM 0.22, and that of 0.21.
inline constexpr char kRelaxBlob[] = "__tvm_ffi__library_bin";
inline constexpr char kRelaxBlob021[] = "__tvm_ffi_library_bin";

// The bytes of the executable, which point into `blob`, and where they begin in the source.
struct RelaxBytes {
  std::span<const std::byte> bytes;
  std::size_t base = 0;
};

// Parses the blob: a 64-bit length, then for TVM 0.22 and later the import tree as two lists of
// numbers and the modules, each a kind and its bytes; `with_tree_module` for 0.21, where the tree
// is one more module among them. `source` names the file in errors; `base` is where `blob` begins
// in it. Nothing where no module is an executable. Throws Error(kFormat) for malformed bytes,
// Error(kIncompatible) for a module of a kind that this runtime has not, naming it.
//
// Format read from TVM's library_module.cc and codegen.cc, 0.21 to 0.27.
std::optional<RelaxBytes> parse_library_blob(std::span<const std::byte> blob,
                                             const std::string& source, std::size_t base,
                                             bool with_tree_module);

}  // namespace run_model
