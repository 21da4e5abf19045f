// The functions of OpenCL 1.2 in use, looked up in libOpenCL.so.1 at run time.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>

namespace run_model {

#define RUN_MODEL_OPENCL_FUNCTIONS(X) \
  X(clGetPlatformIDs)                 \
  X(clGetPlatformInfo)                \
  X(clGetDeviceIDs)                   \
  X(clGetDeviceInfo)                  \
  X(clCreateContext)                  \
  X(clReleaseContext)                 \
  X(clCreateCommandQueue)             \
  X(clReleaseCommandQueue)            \
  X(clCreateBuffer)                   \
  X(clCreateSubBuffer)                \
  X(clRetainMemObject)                \
  X(clReleaseMemObject)               \
  X(clGetMemObjectInfo)               \
  X(clEnqueueFillBuffer)              \
  X(clEnqueueReadBuffer)              \
  X(clEnqueueWriteBuffer)             \
  X(clEnqueueCopyBuffer)              \
  X(clEnqueueMapBuffer)               \
  X(clEnqueueUnmapMemObject)          \
  X(clCreateProgramWithSource)        \
  X(clCreateProgramWithBinary)        \
  X(clBuildProgram)                   \
  X(clGetProgramInfo)                 \
  X(clGetProgramBuildInfo)            \
  X(clReleaseProgram)                 \
  X(clCreateKernel)                   \
  X(clReleaseKernel)                  \
  X(clGetKernelInfo)                  \
  X(clGetKernelWorkGroupInfo)         \
  X(clSetKernelArg)                   \
  X(clEnqueueNDRangeKernel)           \
  X(clEnqueueMarkerWithWaitList)      \
  X(clGetEventInfo)                   \
  X(clGetEventProfilingInfo)          \
  X(clReleaseEvent)                   \
  X(clFlush)                          \
  X(clFinish)

struct OpenClApi {
#define RUN_MODEL_OPENCL_MEMBER(function) decltype(&::function) function = nullptr;
  RUN_MODEL_OPENCL_FUNCTIONS(RUN_MODEL_OPENCL_MEMBER)
#undef RUN_MODEL_OPENCL_MEMBER
  std::string missing;  // why the functions are not there; empty where they are
};

// Loads the library at the first call; it stays loaded.
const OpenClApi& opencl_api();

// "CL_OUT_OF_RESOURCES (-5)".
std::string opencl_error_name(cl_int code);

}  // namespace run_model
