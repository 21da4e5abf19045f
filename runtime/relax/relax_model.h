// A model out of a Relax executable.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/elf/file.h"
#include "runtime/loading/model_library.h"
#include "runtime/relax/executable.h"
#include "runtime/relax/input_forms.h"
#include "runtime/relax/tracer.h"

namespace run_model {

// The names of the functions that are the executable's own.
std::vector<std::string> callable_functions(const RelaxExecutable& executable);

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

// A function that is interpreted, as a graph: its inputs and itself. What it gives shows when it
// runs.
Graph graph_of_call(const RelaxFunction& function, const std::vector<RelaxInput>& inputs,
                    const std::vector<std::vector<std::int64_t>>& shapes);

// What a file tells of a function without its code being run.
struct RelaxDescription {
  Graph graph;
  std::vector<Param> constants;
  std::vector<RelaxInput> inputs;
  std::vector<std::string> functions;  // all that can be chosen
  // Whether a function was compiled as a whole: which functions of others than TVM it calls does
  // not show (called_names.h).
  bool machine_code = false;
  bool whole = false;  // false: what the function calls and gives depends on its inputs
};

// As trace_function(), for a library of any machine. Symbols are taken as 1.
RelaxDescription describe_function(const RelaxExecutable& executable, const std::string& name,
                                   const ElfFile& elf, const std::filesystem::path& path);

}  // namespace run_model
