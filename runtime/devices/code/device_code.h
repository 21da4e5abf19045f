// The code for a GPU that a compiled library carries beside its own, as TVM's device modules store
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <dlpack/dlpack.h>

namespace run_model {

// A kernel as TVM's FunctionInfo describes it.
struct KernelInfo {
  std::string name;                        // also its entry point
  std::vector<DLDataType> argument_types;  // buffers are handles (kDLOpaqueHandle), then scalars
  // What each launch argument after the kernel's own says: "blockIdx.x" … "threadIdx.z", and last
  // "tir.use_dyn_shared_memory" in bytes. A tag may repeat: the same value again.
  std::vector<std::string> launch_tags;
};

// SPIR-V of one kernel.
struct ShaderCode {
  std::string kernel;
  std::uint32_t flags = 0;  // bit 0: scalars are in a uniform buffer, not in push constants
  std::vector<std::uint32_t> words;
};

// One device module. Of `data` and `shaders` there is the one that its kind has.
struct DeviceCode {
  DLDeviceType device = kDLCPU;  // kDLCUDA, kDLOpenCL or kDLVulkan
  std::string format;            // "cl", "ptx", "cubin", "fatbin", "vulkan"
  std::vector<KernelInfo> kernels;
  std::string data;  // OpenCL C of all kernels, PTX, or a CUDA binary
  std::vector<ShaderCode> shaders;
};

}  // namespace run_model
