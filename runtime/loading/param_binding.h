// Where a model's parameters lie in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <run_model/graph.h>
#include <run_model/module.h>
#include "base/mapped_file.h"
#include "runtime/loading/params_file.h"

namespace run_model {

// A parameter's bytes at an address that compiled code can use.
struct BoundParam {
  std::size_t entry = 0;  // of the graph
  const void* data = nullptr;
  std::shared_ptr<const void> owner;
  bool writable = false;  // the bytes are a copy of their own, not part of a mapped file or library
};

struct ParamBinding {
  std::vector<BoundParam> params;
  std::size_t bytes_in_place = 0;
  std::size_t bytes_copied = 0;
};

// Throws Error(kMismatch) unless the parameter has the shape and element type that the graph
// expects. `source` names where it was read from.
void check_form(const Param& param, const std::vector<std::int64_t>& shape, DLDataType dtype,
                const std::string& source);

// Matches parameters to the graph's inputs by name and checks shape and element type. `file`
// is the mapping that the data points into (null where they lie in none). Data that is
// aligned to kTensorAlignment is used where it lies; the rest is copied once, giving the file's
// pages back on the way, so that the copy does not double the memory in use. Throws
// Error(kMismatch) naming a parameter that the graph does not have or has in another form.
ParamBinding bind_params(const Graph& graph, const std::vector<Param>& params,
                         const std::shared_ptr<const MappedFile>& file, const std::string& source);

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
