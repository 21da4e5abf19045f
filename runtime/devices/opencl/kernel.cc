#include "runtime/devices/opencl/kernel.h"

#include <algorithm>

#include <run_model/error.h>
#include "base/text.h"
#include "runtime/devices/kernel_text.h"
#include "runtime/devices/launch.h"

namespace run_model {
namespace {

// Of a compiler's log, which may fill pages.
constexpr std::size_t kShownLog = 600;

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
  void check_needs(const DeviceInfo& device) const {
    cl_ulong local = 0;
    const cl_int status = queue_->api.clGetKernelWorkGroupInfo(
        kernel_, queue_->device, CL_KERNEL_LOCAL_MEM_SIZE, sizeof(local), &local, nullptr);
    if (status != CL_SUCCESS || device.shared_memory_bytes == 0 ||
        local <= device.shared_memory_bytes) {
      return;
    }
    throw Error(ErrorKind::kIncompatible,
                "kernel " + in_quotes(info_.name) + " needs " + std::to_string(local) +
                    " bytes of shared memory, but device " + queue_->name + " has " +
                    std::to_string(device.shared_memory_bytes),
                "compile the model for this device");
  }

 private:
  void set_argument(std::size_t index, const PackedValue& value) {
    const DLDataType type = info_.argument_types[index];
    cl_int status = CL_SUCCESS;
    const auto number = static_cast<cl_uint>(index);
    if (type.code == kDLOpaqueHandle) {
      const cl_mem memory =
          value.v_handle != nullptr ? static_cast<OpenClBuffer*>(value.v_handle)->memory : nullptr;
      status = queue_->api.clSetKernelArg(kernel_, number, sizeof(memory), &memory);
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
};

std::string build_log(const OpenClQueue& queue, cl_program program) {
  std::size_t size = 0;
  queue.api.clGetProgramBuildInfo(program, queue.device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  if (size != 0) {
    queue.api.clGetProgramBuildInfo(program, queue.device, CL_PROGRAM_BUILD_LOG, size, log.data(),
                                    nullptr);
  }
  while (!log.empty() && (log.back() == '\0' || log.back() == '\n')) log.pop_back();
  if (log.size() > kShownLog) log = log.substr(0, kShownLog) + " …";
  return log.empty() ? "the compiler says nothing" : log;
}

// A program that is released when it is no longer needed: kernels keep what they need of it.
class Program {
 public:
  Program(const OpenClQueue& queue, std::string_view source, const std::string& kernel)
      : queue_(queue) {
    const char* text = source.data();
    const std::size_t size = source.size();
    cl_int status = CL_SUCCESS;
    program_ = queue.api.clCreateProgramWithSource(queue.context(), 1, &text, &size, &status);
    queue.check(status, "taking the source of kernel " + in_quotes(kernel));
  }
  ~Program() { queue_.api.clReleaseProgram(program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  cl_program get() const { return program_; }

 private:
  const OpenClQueue& queue_;
  cl_program program_ = nullptr;
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
  const Program program(*queue, source->second, name);
  const OpenClApi& api = queue->api;
  cl_int status = api.clBuildProgram(program.get(), 1, &queue->device, "", nullptr, nullptr);
  if (status != CL_SUCCESS) {
    throw Error(ErrorKind::kIncompatible, "device " + queue->name + " cannot compile kernel " +
                                              in_quotes(name) + " (" + opencl_error_name(status) +
                                              "): " + build_log(*queue, program.get()));
  }
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
