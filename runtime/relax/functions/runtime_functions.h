// Functions of TVM's own runtime, not of the virtual machine, that compiled models call by name
// with tensors to be filled: sorting and the like.
#pragma once

#include <string>
#include <string_view>

#include <run_model/error.h>
#include <run_model/packed_function.h>
#include "runtime/loading/model_library.h"
#include "runtime/relax/values.h"

namespace run_model {

// Null for a name that is none of them.
FfiFunction find_runtime_function(std::string_view name);

// The same function for code of TVM up to 0.20.
PackedFunction find_packed_runtime_function(std::string_view name);

// A function object of the library's compiled function `name`, else of a runtime function, else of
// one of the virtual machine. Throws Error(kIncompatible) where there is none.
FfiValue make_relax_function(const ModelLibrary& library, const std::string& name);

// The Error(kIncompatible) for a function that is called by the library that `source` names, and
// that is nowhere.
Error unknown_function(const std::string& source, const std::string& name);

}  // namespace run_model
