#include "runtime/devices/opencl/api.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/installed_library.h"

namespace run_model {
namespace {

OpenClApi load_opencl() {
  OpenClApi api;
  InstalledLibrary library("libOpenCL.so.1", "OpenCL 1.2");
#define RUN_MODEL_OPENCL_FIND(function) library.find(api.function, #function);
  RUN_MODEL_OPENCL_FUNCTIONS(RUN_MODEL_OPENCL_FIND)
#undef RUN_MODEL_OPENCL_FIND
  api.missing = library.problem();
  return api;
}

struct OpenClCode {
  cl_int code;
  std::string_view name;
};

#define RUN_MODEL_OPENCL_CODE(code) {code, #code}
constexpr std::array kOpenClCodes = {
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_DEVICE_NOT_FOUND),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_DEVICE_NOT_AVAILABLE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_COMPILER_NOT_AVAILABLE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_MEM_OBJECT_ALLOCATION_FAILURE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_OUT_OF_RESOURCES),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_OUT_OF_HOST_MEMORY),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_PROFILING_INFO_NOT_AVAILABLE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_BUILD_PROGRAM_FAILURE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_MAP_FAILURE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_MISALIGNED_SUB_BUFFER_OFFSET),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_VALUE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_DEVICE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_CONTEXT),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_COMMAND_QUEUE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_MEM_OBJECT),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_KERNEL_NAME),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_ARG_VALUE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_ARG_SIZE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_KERNEL_ARGS),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_WORK_GROUP_SIZE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_WORK_ITEM_SIZE),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_OPERATION),
    OpenClCode RUN_MODEL_OPENCL_CODE(CL_INVALID_BUFFER_SIZE),
};
#undef RUN_MODEL_OPENCL_CODE

}  // namespace

const OpenClApi& opencl_api() {
  static OpenClApi api = load_opencl();
  return api;
}

std::string opencl_error_name(cl_int code) {
  const auto known = std::find_if(kOpenClCodes.begin(), kOpenClCodes.end(),
                                  [&](const OpenClCode& c) { return c.code == code; });
  const std::string number = std::to_string(code);
  return known == kOpenClCodes.end() ? "OpenCL's error " + number
                                     : std::string(known->name) + " (" + number + ")";
}

}  // namespace run_model
