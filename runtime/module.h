// A compiled model library (.so) as TVM 0.6 … 0.19 exports it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/packed_function.h"

namespace run_model {

// The graph and parameters that a single-file export carries inside the library.
// The views point into the loaded library and live as long as the Module.
struct EmbeddedGraph {
  std::string graph_json;
  std::span<const std::byte> params;  // TVM's parameter-list format, see params_file.h; may be empty
};

// Keeps the library loaded for as long as any copy of the shared pointer or any Tensor that points
// into it lives.
class Module {
 public:
  // Checks the file (see elf_check.h), loads it and connects it to this runtime's callbacks.
  // Throws Error(kFile | kFormat | kIncompatible).
  static std::shared_ptr<Module> open(const std::filesystem::path& path);

  virtual ~Module() = default;

  virtual const std::filesystem::path& path() const = 0;

  // The compiled function `name`, or null when the library has none of that name.
  virtual PackedFunction find(const std::string& name) const = 0;

  // Present for a single-file export (`lib.export_library` of a factory module).
  virtual const std::optional<EmbeddedGraph>& embedded_graph() const = 0;
};

}  // namespace run_model
