// TVM's device modules inside a library: the kernels' table and the code for them.
#pragma once

#include <memory>
#include <string_view>

#include "base/byte_reader.h"
#include "runtime/devices/code/device_code.h"

namespace run_model {

// Whether a module of this type key holds code for a GPU that read_device_code understands: "cuda",
// "opencl", "vulkan".
bool is_device_code(std::string_view key);

// Reads the content of a module of type `key`, up to its end. Each kernel of the table has a name
// of its own, argument types and launch tags that a launch can be made for, and code in the module;
// code beyond the table is refused too.
//
// Format read from the modules' SaveToBinary and FunctionInfo's Save (src/runtime), which are the
// same in v0.8 to v0.19. Throws Error(kFormat) for malformed bytes, Error(kIncompatible) for what
// no driver here takes (an FPGA's code, vectors as scalars).
std::shared_ptr<const DeviceCode> read_device_code(ByteReader& reader, std::string_view key);

}  // namespace run_model
