// The bytes that a single-file export (`lib.export_library("model.so")` of a whole model) hides in
// the library's symbol __tvm_dev_mblob: the graph and its parameters, and code for GPUs.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "runtime/devices/code/device_code.h"
#include "runtime/loading/params_file.h"

namespace run_model {

// The graph and parameters of a single-file export.
struct EmbeddedGraph {
  std::string module_name;  // as in relay.build(mod_name=…); "default" unless chosen
  std::string graph_json;
  std::vector<Param> params;               // their data points into the blob
  std::shared_ptr<const MappedFile> file;  // the library, which the data points into
};

using DeviceCodes = std::vector<std::shared_ptr<const DeviceCode>>;

struct DeviceBlob {
  std::optional<EmbeddedGraph> graph;  // none in a library that only lists itself
  DeviceCodes codes;                   // no two of their kernels have the same name
};

// Parses the blob: a 64-bit length and, in dmlc's stream format, a list of modules, each a type key
// and its content. `source` names the file in errors; `base` is where `blob` begins in it. `blob`
// may be longer than the length says.
//
// Format read from TVM's ModuleSerializer (src/target/codegen.cc) and the modules' SaveToBinary,
// v0.7 to v0.19. Throws Error(kFormat) for malformed bytes, Error(kIncompatible) for a module of a
// kind that this runtime has not (code for Apple's GPUs, an external library's graph), naming it.
DeviceBlob read_device_blob(std::span<const std::byte> blob, const std::string& source,
                            std::size_t base = 0);

// Throws Error(kIncompatible) where there is code for a GPU.
void refuse_device_codes(const DeviceCodes& codes, const std::string& source);

}  // namespace run_model
