#include "runtime/devices/cuda/api.h"

#include <dlfcn.h>

#include <string_view>

namespace run_model::cuda {
namespace {

constexpr const char* kCudaLibrary = "libcuda.so.1";

class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename F>
  void find(F*& function, const char* name) {
    find_optional(function, name);
    if (function == nullptr && missing_.empty()) missing_ = name;
  }

  template <typename F>
  void find_optional(F*& function, const char* name) {
    function = reinterpret_cast<F*>(::dlsym(library_, name));
  }

  // The first that is not there; empty where all are.
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

void find_all(Symbols& symbols, Api& api) {
  symbols.find(api.init, "cuInit");
  symbols.find(api.driver_version, "cuDriverGetVersion");
  symbols.find(api.error_name, "cuGetErrorName");
  symbols.find(api.error_string, "cuGetErrorString");
  symbols.find(api.device_count, "cuDeviceGetCount");
  symbols.find(api.device_get, "cuDeviceGet");
  symbols.find(api.device_name, "cuDeviceGetName");
  symbols.find(api.device_memory, "cuDeviceTotalMem_v2");
  symbols.find(api.device_attribute, "cuDeviceGetAttribute");
  symbols.find(api.context_retain, "cuDevicePrimaryCtxRetain");
  symbols.find(api.context_release, "cuDevicePrimaryCtxRelease_v2");
  symbols.find(api.context_current, "cuCtxGetCurrent");
  symbols.find(api.context_push, "cuCtxPushCurrent_v2");
  symbols.find(api.context_pop, "cuCtxPopCurrent_v2");
  symbols.find(api.stream_create, "cuStreamCreate");
  symbols.find(api.stream_destroy, "cuStreamDestroy_v2");
  symbols.find(api.stream_wait, "cuStreamSynchronize");
  symbols.find(api.capture_begin, "cuStreamBeginCapture_v2");
  symbols.find(api.capture_end, "cuStreamEndCapture");
  symbols.find(api.allocate, "cuMemAlloc_v2");
  symbols.find(api.free, "cuMemFree_v2");
  symbols.find(api.fill, "cuMemsetD8Async");
  symbols.find(api.upload, "cuMemcpyHtoDAsync_v2");
  symbols.find(api.download, "cuMemcpyDtoHAsync_v2");
  symbols.find(api.copy, "cuMemcpyDtoDAsync_v2");
  symbols.find(api.allocate_host, "cuMemHostAlloc");
  symbols.find(api.free_host, "cuMemFreeHost");
  symbols.find(api.module_load, "cuModuleLoadDataEx");
  symbols.find(api.module_unload, "cuModuleUnload");
  symbols.find(api.module_function, "cuModuleGetFunction");
  symbols.find(api.function_attribute, "cuFuncGetAttribute");
  symbols.find(api.set_function_attribute, "cuFuncSetAttribute");
  symbols.find(api.launch, "cuLaunchKernel");
  symbols.find(api.event_create, "cuEventCreate");
  symbols.find(api.event_destroy, "cuEventDestroy_v2");
  symbols.find(api.event_record, "cuEventRecord");
  symbols.find(api.event_wait, "cuEventSynchronize");
  symbols.find(api.event_elapsed, "cuEventElapsedTime");
  symbols.find_optional(api.graph_instantiate, "cuGraphInstantiateWithFlags");
  symbols.find(api.graph_launch, "cuGraphLaunch");
  symbols.find(api.graph_exec_destroy, "cuGraphExecDestroy");
  symbols.find(api.graph_destroy, "cuGraphDestroy");
}

}  // namespace

const Api* open_api(std::string& reason) {
  void* library = ::dlopen(kCudaLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    reason = std::string("there is no ") + kCudaLibrary;
    return nullptr;
  }
  static Api api;
  Symbols symbols(library);
  find_all(symbols, api);
  if (!symbols.missing().empty()) {
    reason =
        std::string(kCudaLibrary) + " has no " + symbols.missing() + ", CUDA 10.1 and later have";
    return nullptr;
  }
  return &api;
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
