// OpenCL C of a model's kernels, made into kernels.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/devices/device.h"
#include "runtime/devices/opencl/queue.h"

namespace run_model {

// The kernels of one module of a library. TVM writes each as a program of its own: they may define
// the same helpers.
class OpenClModule {
 public:
  // Throws Error(kIncompatible) for code of another format than OpenCL C.
  explicit OpenClModule(std::shared_ptr<const DeviceCode> code);

  // Throws Error(kIncompatible) for a kernel that there is not, with the beginning of the
  // compiler's log where it refuses the source, and where the device has less memory for a group
  // than the kernel needs.
  std::unique_ptr<DeviceKernel> build(const std::shared_ptr<OpenClQueue>& queue,
                                      const std::shared_ptr<OpenClEvents>& events,
                                      const DeviceInfo& device, const std::string& name) const;

 private:
  std::shared_ptr<const DeviceCode> code_;
  std::map<std::string_view, std::string_view> sources_;  // by kernel
};

}  // namespace run_model
