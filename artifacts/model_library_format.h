// metadata.json of a Model Library Format archive.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace run_model {

// Accepts an archive of one model for the graph executor. Fields read from TVM's
// model_library_format.py, versions 1 (0.8 in the making) to 7 (0.10 to 0.19). `source` names the
// archive. Throws Error(kFormat) for what is no such file, Error(kIncompatible) for several models,
// a later version or another executor.
void check_library_format(std::span<const std::byte> metadata, const std::string& source);

}  // namespace run_model
