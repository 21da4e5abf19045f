// Parameters that the compiler put into the library's code as data.
#pragma once

#include <memory>

#include <run_model/graph.h>
#include <run_model/module.h>
#include "runtime/param_binding.h"

namespace run_model {

// The function of a library of TVM 0.7 or 0.8 that gives the address of a linked parameter by its
// storage number. Later releases let the functions of the graph refer to their constants
// themselves, so that the graph has no such inputs and nothing needs to be looked up.
inline constexpr char kLookupLinkedParam[] = "_lookup_linked_param";

// Adds to `binding` the inputs of the graph that have no parameter yet and that the library knows.
// They are constants of the library: bound in place, never written to. The few that are not aligned
// to kTensorAlignment are copied. Throws Error(kModel) where the library's function fails.
void bind_linked_params(const std::shared_ptr<Module>& module, const Graph& graph,
                        ParamBinding& binding);

}  // namespace run_model
