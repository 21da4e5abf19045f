// The functions that a program exports to the libraries that it loads.
#pragma once

#include <span>

namespace run_model {

struct ExportedSymbol {
  const char* name;
  void* address;
};

// All of backend_api.h and float16_abi.h. runtime/CMakeLists.txt has the same names, for the linker
// options that put them into a program's dynamic symbol table.
std::span<const ExportedSymbol> exported_symbols();

}  // namespace run_model
