// Memory that an application has made with OpenCL itself.
#pragma once

#include <cstddef>

#include "runtime/devices/device.h"
#include "runtime/devices/opencl/queue.h"

namespace run_model {

// A buffer of its own for the bytes, to be released. Throws Error(kMismatch) for what is no buffer
// of the queue's context, that kernels may not write, or that has no room at this place.
cl_mem adopt_opencl_memory(const OpenClQueue& queue, const NativeMemory& memory, std::size_t bytes,
                           std::size_t alignment);

// A buffer and its place in the one that it is a part of.
NativeMemory whole_opencl_memory(const OpenClQueue& queue, cl_mem memory);

}  // namespace run_model
