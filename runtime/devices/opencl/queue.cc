#include "runtime/devices/opencl/queue.h"

namespace run_model {
namespace {

bool lacks_memory(cl_int status) {
  return status == CL_MEM_OBJECT_ALLOCATION_FAILURE || status == CL_OUT_OF_HOST_MEMORY ||
         status == CL_OUT_OF_RESOURCES || status == CL_INVALID_BUFFER_SIZE;
}

}  // namespace

OpenClQueue::OpenClQueue(const OpenClApi& functions, cl_platform_id platform,
                         cl_device_id device_id, std::string device_name)
    : api(functions), device(device_id), name(std::move(device_name)) {
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(platform), 0};
  cl_int status = CL_SUCCESS;
  context_ = api.clCreateContext(properties, 1, &device, nullptr, nullptr, &status);
  check(status, "opening the device");
  queue_ = api.clCreateCommandQueue(context_, device, 0, &status);
  if (status != CL_SUCCESS) {
    api.clReleaseContext(context_);
    fail(status, "making a queue");
  }
}

OpenClQueue::~OpenClQueue() {
  api.clFinish(queue_);
  api.clReleaseCommandQueue(queue_);
  api.clReleaseContext(context_);
}

void OpenClQueue::note_times() {
  if (notes_times_) return;
  finish();
  cl_int status = CL_SUCCESS;
  cl_command_queue timed =
      api.clCreateCommandQueue(context_, device, CL_QUEUE_PROFILING_ENABLE, &status);
  check(status, "making a queue that notes times");
  api.clReleaseCommandQueue(queue_);
  queue_ = timed;
  notes_times_ = true;
}

void OpenClQueue::fail(cl_int status, const std::string& what) const {
  throw Error(lacks_memory(status) ? ErrorKind::kIncompatible : ErrorKind::kModel,
              "device " + name + ": " + what + " failed with " + opencl_error_name(status));
}

}  // namespace run_model
