// A compiled model library (.so) as TVM 0.6 … 0.20 exports it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <run_model/packed_function.h>

namespace run_model {

// Keeps the library loaded for as long as any copy of the shared pointer lives. Safe to use from
// several threads. Opening the same file twice gives the same Module.
class Module {
 public:
  // Checks that the file is one for this machine and that all it needs is there, loads it and
  // connects it to this runtime's callbacks.
  // Throws Error(kFile | kFormat | kIncompatible).
  static std::shared_ptr<Module> open(const std::filesystem::path& path);

  virtual ~Module() = default;

  virtual const std::filesystem::path& path() const = 0;

  // The compiled function `name`, or null when the library defines none of that name. Only
  // functions of the library itself are found, never those of the libraries that it needs.
  // "__tvm_main__" gives the function that the library declares as its entry, if any.
  virtual PackedFunction find(const std::string& name) const = 0;
};

}  // namespace run_model
