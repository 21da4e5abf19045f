// A model out of a Relax executable.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/model_library.h"
#include "runtime/relax/executable.h"
#include "runtime/relax/input_forms.h"
#include "runtime/relax/tracer.h"

namespace run_model {

// The function of this name, "main" if it is empty. Throws Error(kMismatch) naming those there are.
const RelaxFunction& choose_function(const RelaxExecutable& executable, const std::string& name,
                                     const std::string& source);

// The graph that `function` computes for inputs of these shapes, in the order of its parameters.
// Throws Error(kMismatch) for shapes that do not fit the function or each other, NotTraceable for a
// function that has to be interpreted.
RelaxTrace trace_function(const RelaxExecutable& executable, const RelaxFunction& function,
                          const std::vector<RelaxInput>& inputs,
                          const std::vector<std::vector<std::int64_t>>& shapes,
                          const ModelLibrary& library);

}  // namespace run_model
