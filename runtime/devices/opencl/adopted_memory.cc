#include "runtime/devices/opencl/adopted_memory.h"

#include <algorithm>
#include <string>

#include <run_model/error.h>

namespace run_model {
namespace {

template <typename T>
T memory_info(const OpenClQueue& queue, cl_mem memory, cl_mem_info what) {
  T value{};
  const cl_int status = queue.api.clGetMemObjectInfo(memory, what, sizeof(T), &value, nullptr);
  if (status == CL_INVALID_MEM_OBJECT) {
    throw Error(ErrorKind::kMismatch,
                "what was given as memory of device " + queue.name + " is no cl_mem");
  }
  queue.check(status, "looking at memory of the application");
  return value;
}

void check_usable(const OpenClQueue& queue, cl_mem memory) {
  const auto refuse = [&queue](const std::string& what, const std::string& hint) {
    throw Error(ErrorKind::kMismatch,
                "the cl_mem that was given as memory of device " + queue.name + what, hint);
  };
  if (memory_info<cl_mem_object_type>(queue, memory, CL_MEM_TYPE) != CL_MEM_OBJECT_BUFFER) {
    refuse(" is no buffer", "images cannot be used");
  }
  if (memory_info<cl_context>(queue, memory, CL_MEM_CONTEXT) != queue.context()) {
    refuse(" is of another context", "make it with DeviceTensor::handles().opencl_context");
  }
  const auto flags = memory_info<cl_mem_flags>(queue, memory, CL_MEM_FLAGS);
  if ((flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY)) != 0) {
    refuse(" is not for reading and writing", "make it with CL_MEM_READ_WRITE");
  }
}

}  // namespace

NativeMemory whole_opencl_memory(const OpenClQueue& queue, cl_mem memory) {
  auto* const whole = memory_info<cl_mem>(queue, memory, CL_MEM_ASSOCIATED_MEMOBJECT);
  if (whole == nullptr) return {memory, 0};
  return {whole, memory_info<std::size_t>(queue, memory, CL_MEM_OFFSET)};
}

cl_mem adopt_opencl_memory(const OpenClQueue& queue, const NativeMemory& memory, std::size_t bytes,
                           std::size_t alignment) {
  auto* const given = static_cast<cl_mem>(memory.base);
  if (given == nullptr) {
    throw Error(ErrorKind::kMismatch, "no memory of device " + queue.name + " was given");
  }
  check_usable(queue, given);
  const auto size = memory_info<std::size_t>(queue, given, CL_MEM_SIZE);
  if (memory.offset > size || bytes > size - memory.offset) {
    throw Error(ErrorKind::kMismatch, "a buffer of device " + queue.name + " has " +
                                          std::to_string(size) + " bytes, but " +
                                          std::to_string(bytes) + " from byte " +
                                          std::to_string(memory.offset) + " on are needed");
  }
  if (memory.offset == 0) {
    queue.check(queue.api.clRetainMemObject(given), "taking memory of the application");
    return given;
  }
  if (memory.offset % alignment != 0) {
    throw Error(ErrorKind::kMismatch, "a tensor begins at byte " + std::to_string(memory.offset) +
                                          " of its buffer, but on device " + queue.name +
                                          " it has to be a multiple of " +
                                          std::to_string(alignment));
  }
  // No part can be taken of a part.
  const NativeMemory whole = whole_opencl_memory(queue, given);
  const cl_buffer_region region{whole.offset + memory.offset, std::max<std::size_t>(bytes, 1)};
  cl_int status = CL_SUCCESS;
  auto* const part = queue.api.clCreateSubBuffer(static_cast<cl_mem>(whole.base), CL_MEM_READ_WRITE,
                                                 CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
  queue.check(status, "taking a part of memory of the application");
  return part;
}

}  // namespace run_model
