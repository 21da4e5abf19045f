// Where a model's parameters lie in memory.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <run_model/graph.h>
#include "base/mapped_file.h"
#include "runtime/params_file.h"

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
// is the mapping that the data points into (null where there are no parameters). Data that is
// aligned to kTensorAlignment is used where it lies; the rest is copied once, giving the file's
// pages back on the way, so that the copy does not double the memory in use. Throws
// Error(kMismatch) naming a parameter that the graph does not have or has in another form.
ParamBinding bind_params(const Graph& graph, const std::vector<Param>& params,
                         const std::shared_ptr<const MappedFile>& file, const std::string& source);

}  // namespace run_model
