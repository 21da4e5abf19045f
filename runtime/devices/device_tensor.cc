#include <run_model/device_tensor.h>

#include <limits>
#include <string>
#include <utility>

#include <run_model/error.h>
#include "runtime/devices/device_memory_view.h"
#include "runtime/devices/device_name.h"
#include "runtime/dlpack_form.h"

namespace run_model {
namespace {

struct LentTensor {
  DeviceTensor tensor;
  std::vector<std::int64_t> shape;
  DLManagedTensor managed{};
};

void check_device(const DLTensor& source) {
  const DLDeviceType type = source.device.device_type;
  if (type == kDLCUDA || type == kDLOpenCL || type == kDLVulkan) return;
  throw Error(ErrorKind::kMismatch,
              "a tensor on " + device_name(source.device) +
                  " was given, expected one on cuda, opencl or vulkan",
              type == kDLCPU ? "memory of the host is for Tensor::from_dlpack" : "");
}

void check_form_of_host(const DeviceTensor& device, const Tensor& host) {
  if (host.defined() && host.shape() == device.shape() &&
      same_dtype(host.dtype(), device.dtype())) {
    return;
  }
  throw Error(
      ErrorKind::kMismatch,
      "a tensor on " + device.device_name() + " is " +
          tensor_form_name(device.dtype(), device.shape()) + ", but " +
          (host.defined() ? tensor_form_name(host.dtype(), host.shape()) : "an empty tensor") +
          " was given to be copied to it");
}

void require_defined(const DeviceTensor& tensor) {
  if (!tensor.defined()) throw Error(ErrorKind::kMismatch, "an empty tensor is on no device");
}

}  // namespace

DeviceTensor DeviceTensor::empty(DLDevice device, std::vector<std::int64_t> shape,
                                 DLDataType dtype) {
  const std::size_t bytes = tensor_bytes(shape, dtype);
  DeviceTensor made;
  made.memory_ = std::make_shared<DeviceMemoryView>(open_device(device), bytes);
  made.shape_ = std::move(shape);
  made.dtype_ = dtype;
  return made;
}

DeviceTensor DeviceTensor::from_dlpack(DLManagedTensor* managed) {
  const DLTensor& source = managed->dl_tensor;
  check_device(source);
  DeviceTensor made;
  made.shape_ = dense_shape(source);
  made.dtype_ = source.dtype;
  const std::size_t bytes = tensor_bytes(made.shape_, made.dtype_);
  if (source.byte_offset > std::numeric_limits<std::size_t>::max()) {
    throw Error(ErrorKind::kMismatch, "a tensor was given that begins beyond all memory");
  }
  const NativeMemory memory{source.data, static_cast<std::size_t>(source.byte_offset)};
  const auto release = [managed] {
    if (managed->deleter != nullptr) managed->deleter(managed);
  };
  made.memory_ =
      std::make_shared<DeviceMemoryView>(open_device(source.device), memory, bytes, release);
  return made;
}

DLManagedTensor* DeviceTensor::to_dlpack() const {
  require_defined(*this);
  const NativeMemory memory = memory_->native();
  auto context = std::make_unique<LentTensor>(LentTensor{*this, shape_, {}});
  DLTensor& tensor = context->managed.dl_tensor;
  tensor.data = memory.base;
  tensor.byte_offset = memory.offset;
  tensor.device = device();
  tensor.ndim = static_cast<int>(shape_.size());
  tensor.dtype = dtype_;
  tensor.shape = context->shape.data();
  context->managed.manager_ctx = context.get();
  context->managed.deleter = [](DLManagedTensor* given) {
    delete static_cast<LentTensor*>(given->manager_ctx);
  };
  return &context.release()->managed;
}

DLDevice DeviceTensor::device() const {
  require_defined(*this);
  return memory_->device().id();
}

const std::string& DeviceTensor::device_name() const {
  require_defined(*this);
  return memory_->device().name();
}

void DeviceTensor::copy_from(const Tensor& host) {
  require_defined(*this);
  check_form_of_host(*this, host);
  if (nbytes() > 0) memory_->upload(host.data());
}

Tensor DeviceTensor::to_host() const {
  require_defined(*this);
  Tensor host = Tensor::empty(shape_, dtype_);
  if (nbytes() > 0) memory_->download(host.data());
  return host;
}

DeviceHandles DeviceTensor::handles(DLDevice device) {
  auto opened = open_device(device);
  DeviceHandles found = opened->device().native_handles();
  found.device = std::move(opened);
  return found;
}

std::size_t DeviceTensor::alignment(DLDevice device) {
  return open_device(device)->device().adopted_alignment();
}

}  // namespace run_model
