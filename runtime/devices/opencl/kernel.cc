#include "runtime/devices/opencl/kernel.h"

#include <algorithm>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/devices/code/kernel_text.h"
#include "runtime/devices/launch.h"
#include "runtime/devices/opencl/program.h"

namespace run_model {
namespace {

class OpenClKernel final : public DeviceKernel {
 public:
  OpenClKernel(std::shared_ptr<OpenClQueue> queue, std::shared_ptr<OpenClEvents> events,
               std::shared_ptr<const DeviceCode> code, const KernelInfo& info, cl_kernel kernel)
      : queue_(std::move(queue)),
        events_(std::move(events)),
        code_(std::move(code)),
        info_(info),
        kernel_(kernel) {}
  ~OpenClKernel() override { queue_->api.clReleaseKernel(kernel_); }

  void launch(std::span<const PackedValue> arguments, const LaunchSize& size) override {
    queue_->require_alive();
    check_registers(info_, size, most_threads_, queue_->name);
    for (std::size_t i = 0; i < arguments.size(); ++i) set_argument(i, arguments[i]);
    std::array<std::size_t, 3> global{};
    std::array<std::size_t, 3> local{};
    for (std::size_t i = 0; i < 3; ++i) {
      local[i] = static_cast<std::size_t>(size.threads[i]);
      if (__builtin_mul_overflow(size.groups[i], size.threads[i], &global[i])) {
        throw Error(ErrorKind::kIncompatible, "kernel " + in_quotes(info_.name) +
                                                  " asks for more threads than device " +
                                                  queue_->name + " can count");
      }
    }
    const cl_int status =
        queue_->api.clEnqueueNDRangeKernel(queue_->queue(), kernel_, 3, nullptr, global.data(),
                                           local.data(), 0, nullptr, events_->next());
    if (status != CL_SUCCESS) [[unlikely]]
      queue_->fail(status, "launching kernel " + in_quotes(info_.name));
  }

  // What the compiled kernel needs is known only now.
  void check_needs(const DeviceInfo& device) {
    most_threads_ = asked<std::size_t>(CL_KERNEL_WORK_GROUP_SIZE);
    const auto local = asked<cl_ulong>(CL_KERNEL_LOCAL_MEM_SIZE);
    if (device.shared_memory_bytes == 0 || local <= device.shared_memory_bytes) return;
    throw Error(ErrorKind::kIncompatible,
                "kernel " + in_quotes(info_.name) + " needs " + std::to_string(local) +
                    " bytes of shared memory, but device " + queue_->name + " has " +
                    std::to_string(device.shared_memory_bytes),
                "compile the model for this device");
  }

 private:
  // 0 where the driver does not say.
  template <typename Number>
  Number asked(cl_kernel_work_group_info what) const {
    Number number = 0;
    const cl_int status = queue_->api.clGetKernelWorkGroupInfo(kernel_, queue_->device, what,
                                                               sizeof(number), &number, nullptr);
    return status == CL_SUCCESS ? number : 0;
  }

  void set_argument(std::size_t index, const PackedValue& value) {
    const DLDataType type = info_.argument_types[index];
    cl_int status = CL_SUCCESS;
    const auto number = static_cast<cl_uint>(index);
    if (type.code == kDLOpaqueHandle) {
      cl_mem memory =
          value.v_handle != nullptr ? static_cast<OpenClBuffer*>(value.v_handle)->memory : nullptr;
      status = queue_->api.clSetKernelArg(kernel_, number, sizeof(cl_mem), &memory);
    } else {
      const ScalarBytes scalar = scalar_bytes(value, type);
      status = queue_->api.clSetKernelArg(kernel_, number, scalar.size, scalar.bytes.data());
    }
    if (status != CL_SUCCESS) [[unlikely]]
      queue_->fail(status, "giving kernel " + in_quotes(info_.name) + " its argument " +
                               std::to_string(index));
  }

  std::shared_ptr<OpenClQueue> queue_;
  std::shared_ptr<OpenClEvents> events_;
  std::shared_ptr<const DeviceCode> code_;
  const KernelInfo& info_;  // in code_
  cl_kernel kernel_;
  std::size_t most_threads_ = 0;  // of a group; 0 where the driver does not say
};

}  // namespace

OpenClModule::OpenClModule(std::shared_ptr<const DeviceCode> code) : code_(std::move(code)) {
  if (code_->format != "cl") {
    throw Error(ErrorKind::kIncompatible,
                "the model's code for OpenCL is in the format " + in_quotes(code_->format) +
                    ", expected OpenCL C (cl)",
                "compile it for the target \"opencl\"");
  }
  for (const OpenClPiece& piece : split_opencl(code_->data)) {
    sources_.emplace(piece.kernel, piece.text);
  }
}

std::unique_ptr<DeviceKernel> OpenClModule::build(const std::shared_ptr<OpenClQueue>& queue,
                                                  const std::shared_ptr<OpenClEvents>& events,
                                                  const DeviceInfo& device,
                                                  const std::string& name) const {
  const auto info = std::find_if(code_->kernels.begin(), code_->kernels.end(),
                                 [&](const KernelInfo& kernel) { return kernel.name == name; });
  const auto source = sources_.find(name);
  if (info == code_->kernels.end() || source == sources_.end()) {
    throw Error(ErrorKind::kIncompatible,
                "the model has no source of kernel " + in_quotes(name) + " for OpenCL",
                "compile it again");
  }
  const OpenClProgram program(*queue, device, name, source->second, CodeCache::of_user());
  const OpenClApi& api = queue->api;
  cl_int status = CL_SUCCESS;
  cl_kernel made = api.clCreateKernel(program.get(), name.c_str(), &status);
  queue->check(status, "making kernel " + in_quotes(name));
  auto kernel = std::make_unique<OpenClKernel>(queue, events, code_, *info, made);
  cl_uint arguments = 0;
  status = api.clGetKernelInfo(made, CL_KERNEL_NUM_ARGS, sizeof(arguments), &arguments, nullptr);
  if (status != CL_SUCCESS || arguments != info->argument_types.size()) {
    throw Error(ErrorKind::kIncompatible,
                "kernel " + in_quotes(name) + " takes " + std::to_string(arguments) +
                    " arguments, but the model's table says " +
                    std::to_string(info->argument_types.size()),
                "compile the model again");
  }
  kernel->check_needs(device);
  return kernel;
}

}  // namespace run_model
