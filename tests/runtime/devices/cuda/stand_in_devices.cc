// GPUs, their contexts, and errors.
#include "tests/runtime/devices/cuda/stand_in_state.h"

#include <cstring>

namespace stand_in {

EXPORTED int cuInit(unsigned flags) {
  const int result = enter("cuInit");
  return flags == 0 ? result : reject("cuInit", "flags");
}

EXPORTED int cuDriverGetVersion(int* version) {
  *version = state().gpu.driver_version;
  return kOk;
}

EXPORTED int cuGetErrorName(int result, const char** name) {
  switch (result) {
    case kNoMemory:
      *name = "CUDA_ERROR_OUT_OF_MEMORY";
      return kOk;
    case kIllegalAddress:
      *name = "CUDA_ERROR_ILLEGAL_ADDRESS";
      return kOk;
    default:
      *name = nullptr;
      return kInvalidValue;
  }
}

EXPORTED int cuGetErrorString(int result, const char** text) {
  *text = result == kIllegalAddress ? "an illegal memory access was encountered" : "stand-in";
  return kOk;
}

EXPORTED int cuDeviceGetCount(int* count) {
  *count = state().gpu.devices;
  return kOk;
}

EXPORTED int cuDeviceGet(int* device, int index) {
  if (index < 0 || index >= state().gpu.devices) return reject("cuDeviceGet", "index");
  *device = index;
  return kOk;
}

EXPORTED int cuDeviceGetName(char* name, int bytes, int /*device*/) {
  std::strncpy(name, "Stand-in GPU", static_cast<std::size_t>(bytes));
  return kOk;
}

EXPORTED int cuDeviceTotalMem_v2(std::size_t* bytes, int /*device*/) {
  *bytes = state().gpu.memory_bytes;
  return kOk;
}

EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int device) {
  const StandInGpu& gpu = state().gpu;
  if (device < 0 || device >= gpu.devices) return kInvalidDevice;
  const std::map<int, int> values = {{1, kThreadsPerBlock},
                                     {2, kBlockLimits[0]},
                                     {3, kBlockLimits[1]},
                                     {4, kBlockLimits[2]},
                                     {5, kGridLimits[0]},
                                     {6, kGridLimits[1]},
                                     {7, kGridLimits[2]},
                                     {8, kSharedPerBlock},
                                     {10, 32},
                                     {13, 1410000},
                                     {16, 108},
                                     {75, gpu.major},
                                     {76, gpu.minor},
                                     {97, kSharedOptIn}};
  const auto found = values.find(attribute);
  if (found == values.end()) return reject("cuDeviceGetAttribute", "attribute");
  *value = found->second;
  return kOk;
}

EXPORTED int cuDevicePrimaryCtxRetain(void** context, int device) {
  const int result = enter("cuDevicePrimaryCtxRetain", "device=" + std::to_string(device));
  if (result != kOk) return result;
  ++state().retained;
  *context = &state().context;
  return kOk;
}

EXPORTED int cuDevicePrimaryCtxRelease_v2(int /*device*/) {
  enter("cuDevicePrimaryCtxRelease_v2");
  if (state().retained == 0) return reject("cuDevicePrimaryCtxRelease_v2", "not retained");
  --state().retained;
  return kOk;
}

EXPORTED int cuCtxGetCurrent(void** context) {
  *context = state().current.empty() ? nullptr : state().current.back();
  return kOk;
}

EXPORTED int cuCtxPushCurrent_v2(void* context) {
  if (context != &state().context || state().retained == 0) {
    return reject("cuCtxPushCurrent_v2", "there is no such context", kInvalidContext);
  }
  state().current.push_back(context);
  return kOk;
}

EXPORTED int cuCtxPopCurrent_v2(void** context) {
  if (state().current.empty()) return reject("cuCtxPopCurrent_v2", "nothing is current");
  *context = state().current.back();
  state().current.pop_back();
  return kOk;
}

}  // namespace stand_in
