// What compiled host code gets for the names of a library's kernels, and calls to launch them.
//
// TVM's interface has one handle for all functions: of compiled code it is the function's address,
// of these it is a place in a table of this program, which no function can lie at.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <run_model/packed_function.h>
#include "runtime/devices/code/device_code.h"
#include "runtime/devices/open_device.h"

namespace run_model {

// A function that is no compiled one.
class HostCallable {
 public:
  virtual ~HostCallable() = default;
  // Throws Error.
  virtual void call(const PackedValue* values, const int* type_codes, int num_values) = 0;
};

inline constexpr std::size_t kMostCallables = std::size_t{1} << 16;
extern std::array<std::atomic<HostCallable*>, kMostCallables> callable_table;

inline bool is_callable_handle(const void* handle) {
  return reinterpret_cast<std::uintptr_t>(handle) -
             reinterpret_cast<std::uintptr_t>(callable_table.data()) <
         sizeof(callable_table);
}

// For handles that is_callable_handle() is true of. 0, or -1 and the reason in last_packed_error().
int call_handle(void* handle, const PackedValue* values, const int* type_codes,
                int num_values) noexcept;

// The device functions of one library. Handles that it gave end with it.
class DeviceFunctions {
 public:
  explicit DeviceFunctions(std::vector<std::shared_ptr<const DeviceCode>> code);
  ~DeviceFunctions();
  DeviceFunctions(const DeviceFunctions&) = delete;
  DeviceFunctions& operator=(const DeviceFunctions&) = delete;

  const std::vector<std::shared_ptr<const DeviceCode>>& code() const { return code_; }

  // A handle for the kernel `name` or for "__tvm_set_device"; null where there is no such function.
  void* find(const std::string& name);

  // Compiles all kernels for the device, so that runs do not have to. Throws as Device::kernel
  // does.
  void prepare(const std::shared_ptr<OpenDevice>& device);

 private:
  class Kernel;
  class SetDevice;

  void* add(const std::string& name, std::unique_ptr<HostCallable> callable);

  std::vector<std::shared_ptr<const DeviceCode>> code_;
  std::mutex mutex_;
  std::map<std::string, Kernel*> kernels_;
  std::map<std::string, std::atomic<HostCallable*>*> handles_;
  std::vector<std::unique_ptr<HostCallable>> callables_;
};

// Scratch memory on device `id` for compiled code; null or false with the reason in
// last_packed_error().
void* allocate_device_workspace(DLDevice id, std::uint64_t bytes) noexcept;
bool free_device_workspace(DLDevice id, void* memory) noexcept;

}  // namespace run_model
