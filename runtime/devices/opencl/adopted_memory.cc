#include "runtime/devices/opencl/adopted_memory.h"

#include <algorithm>

#include "runtime/devices/given_memory.h"

namespace run_model {
namespace {

template <typename T>
cl_int ask_memory(const OpenClQueue& queue, cl_mem memory, cl_mem_info what, T& value) {
  return queue.api.clGetMemObjectInfo(memory, what, sizeof(T), &value, nullptr);
}

template <typename T>
T memory_info(const OpenClQueue& queue, cl_mem memory, cl_mem_info what) {
  T value{};
  queue.check(ask_memory(queue, memory, what, value), "looking at memory of the application");
  return value;
}

void check_usable(const OpenClQueue& queue, const GivenMemory& given, cl_mem memory) {
  cl_mem_object_type type = 0;
  const cl_int status = ask_memory(queue, memory, CL_MEM_TYPE, type);
  if (status == CL_INVALID_MEM_OBJECT) given.refuse_unknown();
  queue.check(status, "looking at memory of the application");
  if (type != CL_MEM_OBJECT_BUFFER) given.refuse("is no buffer", "images cannot be used");
  if (memory_info<cl_context>(queue, memory, CL_MEM_CONTEXT) != queue.context()) {
    given.refuse("is of another context", "make it with DeviceTensor::handles().opencl_context");
  }
  const auto flags = memory_info<cl_mem_flags>(queue, memory, CL_MEM_FLAGS);
  if ((flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY)) != 0) {
    given.refuse("is not for reading and writing", "make it with CL_MEM_READ_WRITE");
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
  const GivenMemory given(queue.name, "a cl_mem", memory);
  auto* const buffer = static_cast<cl_mem>(memory.base);
  check_usable(queue, given, buffer);
  given.require_room(memory_info<std::size_t>(queue, buffer, CL_MEM_SIZE), bytes);
  if (memory.offset == 0) {
    queue.check(queue.api.clRetainMemObject(buffer), "taking memory of the application");
    return buffer;
  }
  given.require_aligned(memory.offset, alignment);
  // No part can be taken of a part.
  const NativeMemory whole = whole_opencl_memory(queue, buffer);
  const cl_buffer_region region{whole.offset + memory.offset, std::max<std::size_t>(bytes, 1)};
  cl_int status = CL_SUCCESS;
  auto* const part = queue.api.clCreateSubBuffer(static_cast<cl_mem>(whole.base), CL_MEM_READ_WRITE,
                                                 CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
  queue.check(status, "taking a part of memory of the application");
  return part;
}

}  // namespace run_model
