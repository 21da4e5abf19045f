// Tensors in the memory of a GPU, which executors read and write where they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dlpack/dlpack.h>

#include <run_model/dtype.h>
#include <run_model/tensor.h>

namespace run_model {

class DeviceMemoryView;

// What an application's own code needs to work in the memory that executors use. Only those of the
// device's kind are set.
struct DeviceHandles {
  std::shared_ptr<void> device{};   // keeps the others valid
  void* cuda_context = nullptr;     // CUcontext: the primary one, which CUDA's runtime uses too
  void* opencl_device = nullptr;    // cl_device_id
  void* opencl_context = nullptr;   // cl_context
  void* vulkan_instance = nullptr;  // VkInstance
  void* vulkan_physical_device = nullptr;  // VkPhysicalDevice
  void* vulkan_device = nullptr;           // VkDevice
  // VkQueue, and of which family. Vulkan lets one thread use a queue at a time: not while another
  // thread calls an executor or a DeviceTensor of this device.
  void* vulkan_queue = nullptr;
  std::uint32_t vulkan_queue_family = 0;
};

// A dense, row-major tensor on a GPU with shared ownership of its bytes: copies share them.
//
// Executors and these functions use a queue of their own. What an application's kernels write to
// the memory has to be done (cuStreamSynchronize, clFinish, vkQueueWaitIdle) before a run or
// to_host() reads it, and they may read what a run writes once run() or wait() has returned.
//
// All functions throw Error: kIncompatible where the driver or the device is not there, kMismatch
// for memory that cannot be used, kModel where the device failed.
class DeviceTensor {
 public:
  DeviceTensor() = default;

  // Zeroed memory.
  static DeviceTensor empty(DLDevice device, std::vector<std::int64_t> shape, DLDataType dtype);

  // Takes over memory of the application or of another framework; the deleter is called when the
  // last copy goes and the device is done with it. The caller keeps what is refused.
  //
  // `data` is what DLPack says: on kDLCUDA an address on this device, on kDLOpenCL a cl_mem of
  // handles().opencl_context, on kDLVulkan a VkBuffer of handles().vulkan_device with the usages
  // STORAGE_BUFFER, TRANSFER_SRC and TRANSFER_DST and memory bound to it, which nobody can check
  // here. The elements begin at `byte_offset`, which has to be a multiple of alignment(), lie
  // densely in row-major order, and the memory must have room for them, of a VkBuffer up to the
  // next multiple of 4 bytes.
  static DeviceTensor from_dlpack(DLManagedTensor* managed);

  // The same form, for code of the application that uses the memory. The receiver calls the
  // deleter. Some of a VkBuffer or an allocation may belong to other tensors: `byte_offset` says
  // where this one begins.
  DLManagedTensor* to_dlpack() const;

  // False for a default-constructed DeviceTensor only.
  bool defined() const { return memory_ != nullptr; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  DLDataType dtype() const { return dtype_; }
  std::size_t nbytes() const { return tensor_bytes(shape_, dtype_); }
  DLDevice device() const;
  // "opencl:0 (NVIDIA …)".
  const std::string& device_name() const;

  // Copies from and to tensors of the host, of the same shape and type, else Error(kMismatch).
  void copy_from(const Tensor& host);
  Tensor to_host() const;

  // Opens the device where it is not in use yet.
  static DeviceHandles handles(DLDevice device);
  // Of where a tensor may begin in memory, in bytes.
  static std::size_t alignment(DLDevice device);

  // For executors.
  const std::shared_ptr<DeviceMemoryView>& memory() const { return memory_; }

 private:
  std::shared_ptr<DeviceMemoryView> memory_;
  std::vector<std::int64_t> shape_;
  DLDataType dtype_{kDLFloat, 32, 1};
};

}  // namespace run_model
