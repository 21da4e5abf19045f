#include "runtime/devices/cuda/api.h"

#include "base/installed_library.h"

namespace run_model::cuda {
namespace {

void find_all(InstalledLibrary& library, Api& api) {
  library.find(api.init, "cuInit");
  library.find(api.driver_version, "cuDriverGetVersion");
  library.find(api.error_name, "cuGetErrorName");
  library.find(api.error_string, "cuGetErrorString");
  library.find(api.device_count, "cuDeviceGetCount");
  library.find(api.device_get, "cuDeviceGet");
  library.find(api.device_name, "cuDeviceGetName");
  library.find(api.device_memory, "cuDeviceTotalMem_v2");
  library.find(api.device_attribute, "cuDeviceGetAttribute");
  library.find(api.context_retain, "cuDevicePrimaryCtxRetain");
  library.find(api.context_release, "cuDevicePrimaryCtxRelease_v2");
  library.find(api.context_current, "cuCtxGetCurrent");
  library.find(api.context_push, "cuCtxPushCurrent_v2");
  library.find(api.context_pop, "cuCtxPopCurrent_v2");
  library.find(api.stream_create, "cuStreamCreate");
  library.find(api.stream_destroy, "cuStreamDestroy_v2");
  library.find(api.stream_query, "cuStreamQuery");
  library.find(api.capture_begin, "cuStreamBeginCapture_v2");
  library.find(api.capture_end, "cuStreamEndCapture");
  library.find(api.allocate, "cuMemAlloc_v2");
  library.find(api.pointer_attribute, "cuPointerGetAttribute");
  library.find(api.address_range, "cuMemGetAddressRange_v2");
  library.find(api.free, "cuMemFree_v2");
  library.find(api.fill, "cuMemsetD8Async");
  library.find(api.upload, "cuMemcpyHtoDAsync_v2");
  library.find(api.download, "cuMemcpyDtoHAsync_v2");
  library.find(api.copy, "cuMemcpyDtoDAsync_v2");
  library.find(api.allocate_host, "cuMemHostAlloc");
  library.find(api.free_host, "cuMemFreeHost");
  library.find(api.module_load, "cuModuleLoadDataEx");
  library.find(api.module_unload, "cuModuleUnload");
  library.find(api.module_function, "cuModuleGetFunction");
  library.find(api.function_attribute, "cuFuncGetAttribute");
  library.find(api.set_function_attribute, "cuFuncSetAttribute");
  library.find(api.launch, "cuLaunchKernel");
  library.find(api.event_create, "cuEventCreate");
  library.find(api.event_destroy, "cuEventDestroy_v2");
  library.find(api.event_record, "cuEventRecord");
  library.find(api.event_elapsed, "cuEventElapsedTime");
  library.find_optional(api.graph_instantiate, "cuGraphInstantiateWithFlags");
  library.find(api.graph_launch, "cuGraphLaunch");
  library.find(api.graph_exec_destroy, "cuGraphExecDestroy");
  library.find(api.graph_destroy, "cuGraphDestroy");
}

}  // namespace

const Api* open_api(std::string& reason) {
  static Api api;
  InstalledLibrary library("libcuda.so.1", "CUDA 10.1");
  find_all(library, api);
  reason = library.problem();
  return reason.empty() ? &api : nullptr;
}

std::string result_text(const Api& api, Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (api.error_name(result, &name) != kSuccess || name == nullptr) {
    return "error " + std::to_string(result);
  }
  if (api.error_string(result, &text) != kSuccess || text == nullptr) return name;
  return std::string(name) + " (" + text + ")";
}

}  // namespace run_model::cuda
