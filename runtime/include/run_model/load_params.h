// Parameters of a graph that runs already, from the bytes of a parameter file.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <run_model/graph_executor.h>

namespace run_model {

// Copies each parameter (runtime/params_file.h) to the argument of its name; names that the graph
// does not have are left out, as TVM does. `source` names the bytes in errors. Throws
// Error(kFormat) for bytes that are no parameter file, Error(kMismatch) for a parameter of another
// shape or element type than the graph's; nothing is set then.
void load_params(GraphExecutor& executor, std::span<const std::byte> bytes,
                 const std::string& source);

}  // namespace run_model
