// What clients can ask of a device: `remote.cpu().exist`, `.device_name` …
#pragma once

#include <run_model/rpc/value.h>

namespace run_model::rpc {

// Numbers of TVM's DeviceAttrKind (device_api.h, v0.18.0).
enum class DeviceAttribute : int {
  kExists = 0,
  kMaxThreadsPerBlock = 1,
  kWarpSize = 2,
  kMaxSharedMemoryPerBlock = 3,
  kComputeVersion = 4,
  kDeviceName = 5,
  kMaxClockRate = 6,  // in kHz
  kMultiProcessorCount = 7,
  kMaxThreadDimensions = 8,
  kMaxRegistersPerBlock = 9,
  kGcnArch = 10,
  kApiVersion = 11,
  kDriverVersion = 12,
  kL2CacheBytes = 13,
  kTotalMemory = 14,      // bytes
  kAvailableMemory = 15,  // bytes
  kImagePitchAlignment = 16,
};

// Null for what the CPU has not or the system does not tell, as TVM answers it.
Value cpu_attribute(DeviceAttribute attribute);

// The same of a GPU; whether it exists is told without an error where it cannot be used.
Value gpu_attribute(const Device& device, DeviceAttribute attribute);

}  // namespace run_model::rpc
