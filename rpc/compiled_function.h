// Functions of compiled libraries, of whichever release of TVM.
#pragma once

#include <memory>
#include <string>

#include <run_model/module.h>
#include <run_model/rpc/function.h>

namespace run_model::rpc {

// Function `name` of the library, with its arguments converted to the calling convention that the
// library has. Null where it has none of that name.
FunctionPointer compiled_function(const std::shared_ptr<Module>& library, const std::string& name);

}  // namespace run_model::rpc
