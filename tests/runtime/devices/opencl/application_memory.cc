#include "tests/runtime/devices/application_memory.h"

#include <stdexcept>

#include "runtime/devices/opencl/api.h"

namespace run_model {

void prepare_tested_driver() {}

struct ApplicationMemory::Made {
  cl_command_queue queue = nullptr;
  cl_mem memory = nullptr;
};

ApplicationMemory::ApplicationMemory(std::size_t bytes)
    : handles_(DeviceTensor::handles(kTestedDevice)), made_(std::make_unique<Made>()) {
  const OpenClApi& api = opencl_api();
  auto* const context = static_cast<cl_context>(handles_.opencl_context);
  cl_int status = CL_SUCCESS;
  made_->queue = api.clCreateCommandQueue(
      context, static_cast<cl_device_id>(handles_.opencl_device), 0, &status);
  if (status != CL_SUCCESS) throw std::runtime_error("no queue of the application");
  made_->memory = api.clCreateBuffer(context, CL_MEM_READ_WRITE, bytes, nullptr, &status);
  if (status != CL_SUCCESS) throw std::runtime_error("no memory of the application");
}

ApplicationMemory::~ApplicationMemory() {
  opencl_api().clReleaseMemObject(made_->memory);
  opencl_api().clReleaseCommandQueue(made_->queue);
}

void* ApplicationMemory::data() const { return made_->memory; }

void ApplicationMemory::write(std::size_t offset, const std::vector<float>& values) {
  opencl_api().clEnqueueWriteBuffer(made_->queue, made_->memory, CL_TRUE, offset, 4 * values.size(),
                                    values.data(), 0, nullptr, nullptr);
}

std::vector<float> ApplicationMemory::read(std::size_t offset, std::size_t count) const {
  std::vector<float> values(count);
  opencl_api().clEnqueueReadBuffer(made_->queue, made_->memory, CL_TRUE, offset, 4 * count,
                                   values.data(), 0, nullptr, nullptr);
  return values;
}

}  // namespace run_model
