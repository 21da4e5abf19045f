// What a GPU can do for compiled code; runtime/devices/{cuda,opencl,vulkan}/ implement it on
// drivers that are opened at run time.
//
// A device has one queue in which copies and launches take place in the order of the calls, so that
// memory may be used for something else as soon as the call that reads it has been made. Nothing
// here may be called by two threads at once. All functions throw Error: kIncompatible where the
// device cannot do what the code asks, kModel where it failed (device lost, time-out); the sentence
// names the device. A failure of a launch may show at a later call, wait() at the latest.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include <dlpack/dlpack.h>

#include <run_model/device_tensor.h>
#include <run_model/packed_function.h>
#include "runtime/devices/code/device_code.h"

namespace run_model {

// What --list-devices, the RPC clients' device attributes and the checks before a launch need.
// Numbers are 0 where the driver does not say.
struct DeviceInfo {
  std::string name;    // as the driver calls it: "NVIDIA H100 80GB HBM3"
  std::string driver;  // "CUDA 12.4", "OpenCL 3.0 PoCL 3.1", "Vulkan 1.3 llvmpipe (Mesa 22.3.6)"
  std::string architecture;  // CUDA: "sm_90"; empty elsewhere
  std::uint64_t memory_bytes = 0;
  std::uint64_t largest_buffer_bytes = 0;
  std::uint64_t shared_memory_bytes = 0;  // of one group of threads
  std::uint64_t threads_per_group = 0;
  std::array<std::uint64_t, 3> group_size{};  // threads of a group in each dimension
  std::array<std::uint64_t, 3> grid_size{};   // groups in each dimension
  std::uint32_t subgroup_size = 0;            // warp, wave: TVM's warp_size
  std::uint32_t compute_units = 0;
  std::uint32_t clock_khz = 0;
  bool software = false;  // computed by the CPU: pocl, llvmpipe
};

struct LaunchSize {
  std::array<std::uint64_t, 3> groups{1, 1, 1};   // blockIdx
  std::array<std::uint64_t, 3> threads{1, 1, 1};  // threadIdx
  std::uint64_t dynamic_shared_bytes = 0;
};

// Memory as the driver's own interface has it, in the form that DLPack asks for: `base` is a CUDA
// address, a cl_mem or a VkBuffer.
struct NativeMemory {
  void* base = nullptr;
  std::size_t offset = 0;
};

class DeviceKernel {
 public:
  virtual ~DeviceKernel() = default;

  // `arguments` are as KernelInfo::argument_types: handles of Device::allocate or part, and
  // scalars. The size was compared with the device's limits before (see check_launch).
  virtual void launch(std::span<const PackedValue> arguments, const LaunchSize& size) = 0;
};

// Launches that were noted once and are repeated as one.
class DeviceRecording {
 public:
  virtual ~DeviceRecording() = default;
  virtual void replay() = 0;
};

class Device {
 public:
  // A point in the queue; its time is known when the queue has passed it.
  using Mark = std::uint64_t;

  virtual ~Device() = default;

  virtual DLDevice id() const = 0;
  virtual const DeviceInfo& info() const = 0;

  // Throws the sentence of the failure after which the device is of no use any more, if there was
  // one; so does everything else that can fail.
  virtual void require_alive() const = 0;

  // Memory is known by an opaque handle, which compiled code takes for the data pointer of a
  // tensor: not null, and a multiple of 64 (compiled code asserts it). Allocated memory is zeroed.
  virtual void* allocate(std::size_t bytes) = 0;
  // A handle of its own for `bytes` bytes of `memory` from `offset` on, a multiple of
  // part_alignment(). It does not keep `memory`, which must be freed after it.
  virtual void* part(void* memory, std::size_t offset, std::size_t bytes) = 0;
  virtual std::size_t part_alignment() const = 0;
  // A handle for `bytes` bytes of memory that the application made, which stays the application's.
  // The offset is a multiple of adopted_alignment(). Throws Error(kMismatch) for what is no memory
  // of this device, or has no room for so many.
  virtual void* adopt(const NativeMemory& memory, std::size_t bytes) = 0;
  virtual std::size_t adopted_alignment() const { return part_alignment(); }
  // What a handle of allocate(), part() or adopt() stands for.
  virtual NativeMemory native(const void* memory) const = 0;
  virtual DeviceHandles native_handles() const = 0;
  // Of allocate(), part() or adopt(). Waits for what uses it.
  virtual void free(void* memory) noexcept = 0;
  virtual std::size_t allocated_bytes() const = 0;

  // Memory of the CPU that copies to and from this device are fastest with, aligned to
  // kTensorAlignment. Ordinary memory may be given to upload and download as well.
  virtual std::shared_ptr<void> allocate_host(std::size_t bytes) = 0;

  // upload: `from` may be changed when it returns. download: the bytes are there when it returns.
  virtual void upload(void* to, std::size_t to_offset, const void* from, std::size_t bytes) = 0;
  virtual void download(const void* from, std::size_t from_offset, void* to, std::size_t bytes) = 0;
  // Between two handles of this device that do not overlap.
  virtual void copy(const void* from, std::size_t from_offset, void* to, std::size_t to_offset,
                    std::size_t bytes) = 0;

  // The kernel `name` of `code`, compiled when it is first asked for or earlier; `code` and what is
  // made of it stay as long as the device. Throws too where the code needs what the device lacks.
  virtual std::unique_ptr<DeviceKernel> kernel(std::shared_ptr<const DeviceCode> code,
                                               const std::string& name) = 0;

  // Hands what is waiting to the driver, without waiting for it.
  virtual void submit() = 0;
  // Until everything asked for is done.
  virtual void wait() = 0;

  virtual Mark mark() = 0;
  // Seconds of device time between two marks; waits for the later one.
  virtual double seconds_between(Mark first, Mark second) = 0;
  virtual void forget_marks() = 0;

  // Notes the launches and device copies that `work` makes, without doing them; no upload,
  // download, wait or mark may be among them. Null where this device gains nothing by it.
  virtual std::unique_ptr<DeviceRecording> record(const std::function<void()>& work) = 0;
};

}  // namespace run_model
