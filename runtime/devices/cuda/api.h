// The functions of NVIDIA's driver, libcuda.so.1, that are in use. They are declared here so that
// building needs no SDK; names, numbers and signatures are those of the driver API's reference
// manual, in the versions (_v2) that 64-bit programs have been linked with since CUDA 4.0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace run_model::cuda {

using Result = int;
using DeviceNumber = int;
using Pointer = std::uint64_t;  // of device memory
using Context = struct ContextObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using ModuleHandle = struct ModuleObject*;
using Function = struct FunctionObject*;
using Graph = struct GraphObject*;
using GraphExec = struct GraphExecObject*;

// CUresult.
inline constexpr Result kSuccess = 0;
inline constexpr Result kInvalidValue = 1;
inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNoDevice = 100;
inline constexpr Result kNoBinaryForGpu = 209;
inline constexpr Result kInvalidPtx = 218;
inline constexpr Result kUnsupportedPtx = 222;
inline constexpr Result kNotFound = 500;
inline constexpr Result kNotReady = 600;

// CUdevice_attribute.
enum class DeviceAttribute : int {
  kThreadsPerBlock = 1,
  kBlockX = 2,
  kBlockY = 3,
  kBlockZ = 4,
  kGridX = 5,
  kGridY = 6,
  kGridZ = 7,
  kSharedPerBlock = 8,
  kWarpSize = 10,
  kClockKhz = 13,
  kMultiprocessors = 16,
  kMajor = 75,
  kMinor = 76,
  kSharedPerBlockOptIn = 97,
};

// CUfunction_attribute.
enum class FunctionAttribute : int {
  kThreadsPerBlock = 0,
  kStaticShared = 1,
  kDynamicShared = 8,  // the most that a launch may ask for, which can be set
};

// CUpointer_attribute, and a CUmemorytype.
enum class PointerAttribute : int { kMemoryType = 2, kDeviceOrdinal = 9 };
inline constexpr unsigned kDeviceMemory = 2;

// CUjit_option.
enum class JitOption : int { kErrorLog = 5, kErrorLogBytes = 6 };

inline constexpr unsigned kStreamNonBlocking = 1;  // not ordered with the default stream
inline constexpr unsigned kHostPortable = 1;       // pinned for all contexts
inline constexpr int kCaptureThreadLocal = 1;      // other threads may call what they like

struct Api {
  Result (*init)(unsigned flags);
  Result (*driver_version)(int* version);
  Result (*error_name)(Result result, const char** name);
  Result (*error_string)(Result result, const char** text);

  Result (*device_count)(int* count);
  Result (*device_get)(DeviceNumber* device, int index);
  Result (*device_name)(char* name, int bytes, DeviceNumber device);
  Result (*device_memory)(std::size_t* bytes, DeviceNumber device);
  Result (*device_attribute)(int* value, DeviceAttribute attribute, DeviceNumber device);

  Result (*context_retain)(Context* context, DeviceNumber device);
  Result (*context_release)(DeviceNumber device);
  Result (*context_current)(Context* context);
  Result (*context_push)(Context context);
  Result (*context_pop)(Context* context);

  Result (*stream_create)(Stream* stream, unsigned flags);
  Result (*stream_destroy)(Stream stream);
  Result (*stream_query)(Stream stream);
  Result (*capture_begin)(Stream stream, int mode);
  Result (*capture_end)(Stream stream, Graph* graph);

  Result (*allocate)(Pointer* memory, std::size_t bytes);
  Result (*pointer_attribute)(void* value, PointerAttribute attribute, Pointer memory);
  Result (*address_range)(Pointer* base, std::size_t* bytes, Pointer memory);
  Result (*free)(Pointer memory);
  Result (*fill)(Pointer memory, unsigned char value, std::size_t bytes, Stream stream);
  Result (*upload)(Pointer to, const void* from, std::size_t bytes, Stream stream);
  Result (*download)(void* to, Pointer from, std::size_t bytes, Stream stream);
  Result (*copy)(Pointer to, Pointer from, std::size_t bytes, Stream stream);
  Result (*allocate_host)(void** memory, std::size_t bytes, unsigned flags);
  Result (*free_host)(void* memory);

  Result (*module_load)(ModuleHandle* module, const void* image, unsigned options,
                        JitOption* option_names, void** option_values);
  Result (*module_unload)(ModuleHandle module);
  Result (*module_function)(Function* function, ModuleHandle module, const char* name);
  Result (*function_attribute)(int* value, FunctionAttribute attribute, Function function);
  Result (*set_function_attribute)(Function function, FunctionAttribute attribute, int value);
  Result (*launch)(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   Stream stream, void** arguments, void** extra);

  Result (*event_create)(Event* event, unsigned flags);
  Result (*event_destroy)(Event event);
  Result (*event_record)(Event event, Stream stream);
  Result (*event_elapsed)(float* milliseconds, Event first, Event second);

  // Since CUDA 11.4; null before, and then nothing is recorded.
  Result (*graph_instantiate)(GraphExec* exec, Graph graph, unsigned long long flags);
  Result (*graph_launch)(GraphExec exec, Stream stream);
  Result (*graph_exec_destroy)(GraphExec exec);
  Result (*graph_destroy)(Graph graph);
};

// Opens the driver's library, which then stays open. Null where it cannot be used, with the reason.
const Api* open_api(std::string& reason);

// "CUDA_ERROR_OUT_OF_MEMORY (out of memory)".
std::string result_text(const Api& api, Result result);

}  // namespace run_model::cuda
