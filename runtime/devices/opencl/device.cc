#include "runtime/devices/opencl/device.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include <run_model/error.h>
#include <run_model/tensor.h>
#include "runtime/devices/device_name.h"
#include "runtime/devices/opencl/adopted_memory.h"
#include "runtime/devices/opencl/kernel.h"
#include "runtime/devices/opencl/queue.h"

namespace run_model {
namespace {

// Memory is filled with zeros in words of this size.
constexpr std::size_t kWord = 4;

std::size_t whole_words(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + kWord - 1) / kWord * kWord;
}

OpenClBuffer& buffer_of(const void* handle) {
  return *static_cast<OpenClBuffer*>(const_cast<void*>(handle));
}

class OpenClDevice final : public Device {
 public:
  OpenClDevice(const OpenClApi& api, cl_platform_id platform, cl_device_id device, DLDevice id,
               const DeviceInfo& info, std::uint64_t patience_nanoseconds)
      : id_(id),
        info_(info),
        queue_(std::make_shared<OpenClQueue>(api, platform, device,
                                             device_name(id) + " (" + info_.name + ")",
                                             patience_nanoseconds)),
        events_(std::make_shared<OpenClEvents>(queue_)) {
    cl_uint bits = 0;
    const cl_int status =
        api.clGetDeviceInfo(device, CL_DEVICE_MEM_BASE_ADDR_ALIGN, sizeof(bits), &bits, nullptr);
    queue_->check(status, "asking for the alignment of memory");
    part_alignment_ = std::max<std::size_t>(bits / 8, 1);
  }

  DLDevice id() const override { return id_; }
  const DeviceInfo& info() const override { return info_; }
  void require_alive() const override { queue_->require_alive(); }

  void* allocate(std::size_t bytes) override {
    queue_->require_alive();
    const std::size_t size = whole_words(bytes);
    if (info_.largest_buffer_bytes != 0 && size > info_.largest_buffer_bytes) {
      throw Error(ErrorKind::kIncompatible, "device " + queue_->name + " gives at most " +
                                                std::to_string(info_.largest_buffer_bytes) +
                                                " bytes in one piece, but " + std::to_string(size) +
                                                " are needed");
    }
    queue_->prepare_to_block();
    cl_int status = CL_SUCCESS;
    cl_mem memory =
        queue_->api.clCreateBuffer(queue_->context(), CL_MEM_READ_WRITE, size, nullptr, &status);
    if (status == CL_SUCCESS) {
      auto buffer = std::make_unique<OpenClBuffer>(OpenClBuffer{memory, size});
      const cl_uint zero = 0;
      // Drivers take memory when it is first used.
      status = queue_->api.clEnqueueFillBuffer(queue_->queue(), memory, &zero, sizeof(zero), 0,
                                               size, 0, nullptr, nullptr);
      if (status == CL_SUCCESS) status = queue_->api.clFinish(queue_->queue());
      if (status == CL_SUCCESS) {
        allocated_ += size;
        return buffer.release();
      }
      queue_->api.clReleaseMemObject(memory);
    }
    queue_->fail(status, "allocating " + std::to_string(size) + " bytes");
  }

  void* part(void* memory, std::size_t offset, std::size_t bytes) override {
    queue_->require_alive();
    OpenClBuffer& whole = buffer_of(memory);
    const cl_buffer_region region{offset, std::max<std::size_t>(bytes, 1)};
    cl_int status = CL_SUCCESS;
    cl_mem part = queue_->api.clCreateSubBuffer(whole.memory, CL_MEM_READ_WRITE,
                                                CL_BUFFER_CREATE_TYPE_REGION, &region, &status);
    queue_->check(status, "taking a part of memory");
    return new OpenClBuffer{part, 0};
  }

  std::size_t part_alignment() const override { return part_alignment_; }

  void* adopt(const NativeMemory& memory, std::size_t bytes) override {
    queue_->require_alive();
    return new OpenClBuffer{adopt_opencl_memory(*queue_, memory, bytes, part_alignment_), 0};
  }
  NativeMemory native(const void* memory) const override {
    return whole_opencl_memory(*queue_, buffer_of(memory).memory);
  }
  DeviceHandles native_handles() const override {
    DeviceHandles handles;
    handles.opencl_device = queue_->device;
    handles.opencl_context = queue_->context();
    return handles;
  }

  // The driver keeps memory until the commands that use it are done.
  void free(void* memory) noexcept override {
    OpenClBuffer* buffer = &buffer_of(memory);
    if (!queue_->is_stuck()) queue_->api.clReleaseMemObject(buffer->memory);
    allocated_ -= buffer->bytes;
    delete buffer;
  }

  std::size_t allocated_bytes() const override { return allocated_; }

  std::shared_ptr<void> allocate_host(std::size_t bytes) override {
    queue_->require_alive();
    const std::size_t size = std::max<std::size_t>(bytes, 1) + kTensorAlignment;
    queue_->prepare_to_block();
    cl_int status = CL_SUCCESS;
    cl_mem memory = queue_->api.clCreateBuffer(
        queue_->context(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, nullptr, &status);
    queue_->check(status, "allocating memory of the host");
    void* mapped =
        queue_->api.clEnqueueMapBuffer(queue_->queue(), memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                       0, size, 0, nullptr, nullptr, &status);
    if (status != CL_SUCCESS) {
      queue_->api.clReleaseMemObject(memory);
      queue_->fail(status, "mapping memory of the host");
    }
    auto release = [queue = queue_, memory, mapped](void*) {
      if (queue->is_stuck()) return;
      queue->api.clEnqueueUnmapMemObject(queue->queue(), memory, mapped, 0, nullptr, nullptr);
      queue->api.clReleaseMemObject(memory);
    };
    const std::size_t beyond = reinterpret_cast<std::uintptr_t>(mapped) % kTensorAlignment;
    char* aligned = static_cast<char*>(mapped) + (beyond == 0 ? 0 : kTensorAlignment - beyond);
    return {aligned, std::move(release)};
  }

  void upload(void* to, std::size_t to_offset, const void* from, std::size_t bytes) override {
    if (bytes == 0) return;
    queue_->require_alive();
    queue_->prepare_to_block();
    queue_->check_wait(
        queue_->api.clEnqueueWriteBuffer(queue_->queue(), buffer_of(to).memory, CL_TRUE, to_offset,
                                         bytes, from, 0, nullptr, events_->next()),
        "copying to the device");
  }

  void download(const void* from, std::size_t from_offset, void* to, std::size_t bytes) override {
    if (bytes == 0) return;
    queue_->require_alive();
    queue_->prepare_to_block();
    queue_->check_wait(
        queue_->api.clEnqueueReadBuffer(queue_->queue(), buffer_of(from).memory, CL_TRUE,
                                        from_offset, bytes, to, 0, nullptr, events_->next()),
        "copying from the device");
  }

  void copy(const void* from, std::size_t from_offset, void* to, std::size_t to_offset,
            std::size_t bytes) override {
    if (bytes == 0) return;
    queue_->require_alive();
    queue_->check(queue_->api.clEnqueueCopyBuffer(queue_->queue(), buffer_of(from).memory,
                                                  buffer_of(to).memory, from_offset, to_offset,
                                                  bytes, 0, nullptr, events_->next()),
                  "copying on the device");
  }

  std::unique_ptr<DeviceKernel> kernel(std::shared_ptr<const DeviceCode> code,
                                       const std::string& name) override {
    auto& module = modules_[code.get()];
    if (module == nullptr) module = std::make_unique<OpenClModule>(std::move(code));
    return module->build(queue_, events_, info_, name);
  }

  void submit() override {
    queue_->require_alive();
    queue_->check(queue_->api.clFlush(queue_->queue()), "starting kernels");
  }
  void wait() override { queue_->finish(); }

  Mark mark() override { return events_->mark(); }
  double seconds_between(Mark first, Mark second) override {
    return events_->seconds_between(first, second);
  }
  void forget_marks() override { events_->forget(); }

  // Command buffers are an extension of OpenCL that hardly a driver has.
  std::unique_ptr<DeviceRecording> record(const std::function<void()>&) override { return nullptr; }

 private:
  DLDevice id_;
  DeviceInfo info_;
  std::shared_ptr<OpenClQueue> queue_;
  std::shared_ptr<OpenClEvents> events_;
  std::size_t part_alignment_ = 1;
  std::size_t allocated_ = 0;
  std::map<const DeviceCode*, std::unique_ptr<OpenClModule>> modules_;
};

}  // namespace

std::unique_ptr<Device> open_opencl_device(const OpenClApi& api, cl_platform_id platform,
                                           cl_device_id device, DLDevice id, const DeviceInfo& info,
                                           std::uint64_t patience_nanoseconds) {
  if (patience_nanoseconds == 0) patience_nanoseconds = patience_nanoseconds_with(info.software);
  return std::make_unique<OpenClDevice>(api, platform, device, id, info, patience_nanoseconds);
}

}  // namespace run_model
